"""``catalogs.yml`` (dbt 1.10 and later): the two catalogs as integrations that models name with ``catalog_name``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.catalogs._exceptions import DbtCatalogIntegrationNotFoundError
from dbt.adapters.catalogs._integration import CatalogIntegration, CatalogIntegrationConfig
from dbt.adapters.contracts.relation import RelationConfig
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.spelling import did_you_mean
from hudi_engine.format.storage.given import public_location

_PROPERTIES = ("location_root",)


@dataclass
class HudiCatalogRelation:
    """The table of a model, as an integration defines it; ``external_volume`` is the folder or URI of its tables."""

    catalog_name: str | None
    table_format: str | None
    external_volume: str | None
    file_format: str | None


class HudiCatalogIntegration(CatalogIntegration):
    """A write integration of ``catalogs.yml``; ``external_volume`` or ``location_root`` is the folder or URI of its tables."""

    table_format = "hudi"
    file_format = "parquet"
    allows_writes = True

    def __init__(self, config: CatalogIntegrationConfig) -> None:
        super().__init__(config)
        self.file_format = self.file_format or "parquet"
        for what, given, legal in (
            ("table_format", self.table_format, "hudi"),
            ("file_format", self.file_format, "parquet"),
        ):
            if str(given).lower() != legal:
                raise DbtRuntimeError(
                    f"catalogs.yml, {config.name}: {what} is {given!r}; dbt-hudi writes {legal!r} only, leave it out"
                )
        properties: Mapping[str, Any] = config.adapter_properties or {}
        unknown = sorted(set(properties) - set(_PROPERTIES))
        if unknown:
            raise DbtRuntimeError(
                f"catalogs.yml, {config.name}: adapter_properties has {', '.join(unknown)}; "
                f"{did_you_mean(unknown[0], _PROPERTIES)}known: {', '.join(_PROPERTIES)}"
            )
        place = self.external_volume or properties.get("location_root")
        self.external_volume = None if place is None else public_location(place)

    def build_relation(self, config: RelationConfig) -> HudiCatalogRelation:  # noqa: ARG002
        return HudiCatalogRelation(
            self.catalog_name, self.table_format, self.external_volume, self.file_format
        )


class DirectoryCatalogIntegration(HudiCatalogIntegration):
    """A folder is the catalog."""

    catalog_type = "directory"


class HiveCatalogIntegration(HudiCatalogIntegration):
    """A Hive metastore is the catalog."""

    catalog_type = "hive"


def with_catalog(
    config: Mapping[str, Any], find: Callable[[str], CatalogIntegration], profile_catalog: str
) -> Mapping[str, Any]:
    """Return a model's config with the folder of the catalog that its ``catalog_name`` names.

    Args:
        profile_catalog: The profile's ``catalog``.
    """
    name = config.get("catalog_name")
    if not name:
        return config
    try:
        integration = find(str(name))
    except DbtCatalogIntegrationNotFoundError as error:
        raise DbtRuntimeError(
            f"catalog_name is {name!r}, which catalogs.yml does not name, or that file is not next to dbt_project.yml. Leave "
            f"catalog_name out for the catalog of the profile. {error.msg}"
        ) from error
    if integration.catalog_type != profile_catalog:
        raise DbtRuntimeError(
            f"catalog_name is {integration.name!r}, a catalog of type {integration.catalog_type!r}, and the profile's is "
            f"{profile_catalog!r}: a run has one catalog; set `catalog: {integration.catalog_type}` in the profile, or name "
            "another"
        )
    if config.get("location_root") or not integration.external_volume:
        return config
    return {**config, "location_root": integration.external_volume}

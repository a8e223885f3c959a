"""Names of tables, views and sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dbt.adapters.spark.relation import SparkRelation

from dbt.adapters.hudi.sources import NOTED, SourcePlace


@dataclass(frozen=True, eq=False, repr=False)
class HudiRelation(SparkRelation):
    """A relation; Hudi tables are always of type table, whatever Spark's catalog holds for them."""

    @classmethod
    def create_from(cls, quoting: Any, relation_config: Any, **kwargs: Any) -> Any:
        """The relation of a node; of a source it is noted where its table lives, if the source says so."""
        external = getattr(relation_config, "external", None)
        location = getattr(external, "location", None)
        if location:
            NOTED.note(SourcePlace(relation_config.schema, relation_config.identifier, str(location)))
        return super().create_from(quoting, relation_config, **kwargs)

"""A table built under a name that something else may have: that goes when the table is there, not before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import rebuild_table
from hudi_engine.format.config.options import laid_over
from hudi_engine.format.storage.uris import same_place
from hudi_engine.spark.catalog import CatalogEntry, TableName, drop_table
from hudi_engine.spark.front.rebuild import build_instead
from hudi_engine.table.clone import CloneResult
from hudi_engine.table.write.result import WriteResult
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.rows.existing_target import refuse_place_in_a_table, refuse_place_of_another
from dbt.adapters.hudi.spark.shared_folders import SharedFolders
from dbt.adapters.hudi.spark.warehouse import Warehouse


@dataclass(frozen=True)
class NamedPlace:
    """Where a table goes: its name, its folder, and whether the folder is one that the name does not say."""

    name: TableName
    base: str
    own_location: bool = False


def build_under_name(
    warehouse: Warehouse,
    session: SparkSession,
    plan: ModelPlan,
    entry: CatalogEntry | None,
    frame: DataFrame,
    build: Callable[..., WriteResult] = rebuild_table,
) -> WriteResult:
    """Build a table; what else has its name then makes room. Where the build fails all is as it was.

    A Hudi table of another place loses its name only: its files stay, with a warning. Those in the folder of its name go, as with
    CREATE OR REPLACE in place: they would be a table of that name again once it leads nowhere else.
    """
    definition = with_options(plan, warehouse.options)

    def make_room() -> None:
        # hive sync, or another process, may have given the name to a Hudi table meanwhile
        now = warehouse.entry(session, plan.schema, plan.name)
        if now is not None and now.base is None:
            warehouse.drop(session, plan.schema, plan.name)

    plain = entry is not None and entry.base is None
    folder = entry.managed_folder if entry is not None and plain else None
    if folder is not None and same_place(folder, plan.base):
        return build_instead(session, plan.base, frame, make_room, **definition)
    result = build(session, plan.base, frame, **definition)
    if plain:
        make_room()
    elif entry is not None and entry.base is not None and not same_place(entry.base, plan.base):
        place = NamedPlace(TableName(plan.schema, plan.name), plan.base, plan.own_location)
        _lead_elsewhere(warehouse, session, place, entry)
    return result


def _lead_elsewhere(
    warehouse: Warehouse, session: SparkSession, place: NamedPlace, entry: CatalogEntry
) -> None:
    """Let a name lead to the place of a new table, in one step, and then see to the files at the place before."""
    name = place.name
    if place.own_location and warehouse.directory is not None and not entry.foreign:
        warehouse.directory.save_pointer(name.database.lower(), name.name, place.base)
        drop_table(session, name)
        warehouse.changed()
    else:
        warehouse.forget(session, name.database, name.name)
    if not entry.is_hudi_table or entry.foreign:
        return
    with suppress(DbtRuntimeError):  # another name shows them too
        if SharedFolders(warehouse.directory).remove_hidden(name, place.base):
            return
    logger.warning(
        "{} moved to {}; the files at {} are left there, remove them when nobody reads them",
        name.name,
        place.base,
        entry.base,
    )


def clone_under_name(
    warehouse: Warehouse,
    session: SparkSession,
    place: NamedPlace,
    make: Callable[..., CloneResult],
    *,
    replace: bool,
) -> CloneResult:
    """Make a clone; a view or table without Hudi that has its name then makes room. Where that fails all is as it was."""
    name, base = place.name, place.base
    entry = warehouse.entry(session, name.database, name.name)
    moves = entry is not None and entry.base is not None and not same_place(entry.base, base)
    if entry is None or entry.base is None or moves:
        refuse_place_in_a_table(name, base)
    if moves:
        refuse_place_of_another(warehouse, session, name, base)
    if entry is None or entry.is_hudi_table:
        done = make(None, replace=replace and not moves)
        if entry is not None and moves:
            _lead_elsewhere(warehouse, session, place, entry)
        return done

    def make_room() -> None:
        now = warehouse.entry(session, name.database, name.name)
        if now is not None and not now.is_hudi_table:
            warehouse.drop(session, name.database, name.name)

    folder = entry.managed_folder if entry.base is None else None
    if folder is not None and same_place(folder, base):
        return make(make_room, replace=replace)
    done = make(None, replace=replace)
    make_room()
    return done


def with_options(plan: ModelPlan, options: Mapping[str, str]) -> dict[str, Any]:
    """Return a table's definition with the options of the profile, before those of the model."""
    return {**plan.definition, "options": laid_over(options, plan.create_options)}

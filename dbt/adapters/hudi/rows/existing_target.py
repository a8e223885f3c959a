"""What exists where a table is to be built: rows stay unless the command replaces them, and a warning names those that go."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import rebuild_table
from hudi_engine.errors import TableNotFoundError
from hudi_engine.format.storage.uris import plain_location, same_place
from hudi_engine.spark.catalog import CatalogEntry, TableName, drop_table
from hudi_engine.spark.front.rebuild import build_instead
from hudi_engine.table.clone import CloneResult
from hudi_engine.table.write.result import WriteResult
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.preview import PREVIEW
from dbt.adapters.hudi.spark.folders import table_around
from dbt.adapters.hudi.spark.shared_folders import SharedFolders
from dbt.adapters.hudi.spark.warehouse import Warehouse


def find_existing(
    warehouse: Warehouse, session: SparkSession, plan: ModelPlan, entry: CatalogEntry | None, *, begins: bool
) -> bool:
    """Return whether a build replaces a Hudi table that the warehouse has no name for; one of another name is refused.

    Args:
        begins: The run may not replace rows, so that a table without a name is refused as well.
    """
    leads = entry is not None and entry.base is not None and same_place(entry.base, plan.base)
    if not leads:
        refuse_place_in_a_table(TableName(plan.schema, plan.name), plan.base)
    lies_there = not leads and is_written(warehouse, session, plan.base)
    if lies_there:
        refuse_place_of_another(warehouse, session, TableName(plan.schema, plan.name), plan.base)
    if not begins:
        return lies_there
    named = warehouse.base_on_disk(plan.schema, plan.name)  # which another process may have made
    if named is None and entry is not None and entry.is_hudi_table:
        named = entry.base
    if named is not None and is_written(warehouse, session, named):
        raise created_concurrently(plan)
    if lies_there:
        place, keeps_history = plain_location(plan.base), plan.table.keeps_history
        raise DbtRuntimeError(
            f"{plan.schema}.{plan.name} would be built at {place}, where a Hudi table lies that this warehouse has no name for: "
            "its rows would be replaced. If it is another environment's, set another location_root or alias. To continue it, give "
            f"it the name: dbt run-operation hudi_adopt --args '{{table: {plan.schema}.{plan.name}, location: \"{place}\"}}'; "
            f"{'remove the folder to begin a new history' if keeps_history else '--full-refresh replaces it'}"
        )
    return False


def refuse_place_in_a_table(name: TableName, base: str) -> None:
    """Refuse a folder for a new table that lies in the folder of another one: what removes that would remove it too."""
    around = table_around(base)
    if around is not None:
        raise DbtRuntimeError(
            f"{name.label} would be built at {plain_location(base)}, in the folder of the Hudi table at {plain_location(around)}, "
            "and would go with that one. Set a location_root, in SQL a LOCATION, that lies in no table's folder"
        )


def refuse_place_of_another(warehouse: Warehouse, session: SparkSession, name: TableName, base: str) -> None:
    """Refuse to make a table in a folder that is another name's table."""
    other = name_of_place(warehouse, session, base)
    if other is not None:
        raise DbtRuntimeError(
            f"{name.label} would be built at {plain_location(base)}, which is the table {other.label}: its "
            "rows would be replaced. Set another location_root (such as one with the schema in it), in SQL another LOCATION, or "
            "another alias"
        )


def name_of_place(
    warehouse: Warehouse, session: SparkSession, base: str, *, sources: bool = True
) -> TableName | None:
    """Return the name that a folder's table has in the warehouse."""
    for schema in warehouse.schemas(session):
        for each in warehouse.entries(session, schema):
            if each.is_hudi_table and each.base is not None and same_place(each.base, base):
                if sources or not each.foreign:
                    return each.name
    return None


def created_concurrently(plan: ModelPlan) -> DbtRuntimeError:
    """Return the error of a first run whose table another run has built since it started."""
    return DbtRuntimeError(
        f"{plan.schema}.{plan.name} was not there when this run looked, and has been built since, by another run of dbt: to build "
        "it would replace those rows. Run it again, and it adds to them; --full-refresh replaces them"
    )


def warn_replaced(plan: ModelPlan) -> None:
    """Warn that a table has been replaced that the warehouse had no name for."""
    logger.warning(
        "{}.{} has replaced a Hudi table at {} that this warehouse had no name for. If that was another environment's, give one of "
        "the two another location_root or alias",
        plan.schema,
        plan.name,
        plain_location(plan.base),
    )


def is_written(warehouse: Warehouse, session: SparkSession, base: str) -> bool:
    """Whether a Hudi table with commits lies in a folder."""
    try:
        return bool(warehouse.table(session, base).commits(limit=1))
    except TableNotFoundError:
        return False


Result = TypeVar("Result")


@dataclass(frozen=True)
class NamedPlace:
    """Where a table goes: its name, its folder, and whether the folder is another than the name's."""

    name: TableName
    base: str
    own_location: bool = False


def make_under_name(
    warehouse: Warehouse,
    session: SparkSession,
    place: NamedPlace,
    entry: CatalogEntry | None,
    make: Callable[[Callable[[], None] | None], Result],
) -> Result:
    """Make a table; what else has its name then makes room. Where that fails all is as it was.

    A Hudi table of another place loses its name only: its files stay, with a warning. Those in the folder of its name are removed,
    as with CREATE OR REPLACE in place: they would be a table of that name again once it leads nowhere else.

    Args:
        make: Makes the table; it takes what removes the plain table that lies in its folder, None where none does.
    """
    name = place.name
    if PREVIEW.is_on:
        return make(None)

    def make_room() -> None:
        # hive sync, or another process, may have given the name to a Hudi table meanwhile
        now = warehouse.entry(session, name.database, name.name)
        if now is not None and now.base is None:
            warehouse.drop(session, name.database, name.name)

    if entry is None:
        return make(None)
    if entry.base is None:
        if entry.managed_folder is not None and same_place(entry.managed_folder, place.base):
            return make(make_room)
        result = make(None)
        make_room()
        return result
    result = make(None)
    if not same_place(entry.base, place.base):
        _lead_elsewhere(warehouse, session, place, entry)
    return result


def build_under_name(
    warehouse: Warehouse,
    session: SparkSession,
    plan: ModelPlan,
    entry: CatalogEntry | None,
    frame: DataFrame,
    build: Callable[..., WriteResult] = rebuild_table,
) -> WriteResult:
    """Build a model's table; what else has its name then makes room."""
    definition = plan.definition_with(warehouse.options)

    def make(make_room: Callable[[], None] | None) -> WriteResult:
        if make_room is not None:
            return build_instead(session, plan.base, frame, make_room, **definition)
        return build(session, plan.base, frame, **definition)

    place = NamedPlace(TableName(plan.schema, plan.name), plan.base, plan.own_location)
    return make_under_name(warehouse, session, place, entry, make)


def clone_under_name(
    warehouse: Warehouse,
    session: SparkSession,
    place: NamedPlace,
    make: Callable[..., CloneResult],
    *,
    replace: bool,
) -> CloneResult:
    """Make a clone; what else has its name then makes room."""
    name, base = place.name, place.base
    entry = warehouse.entry(session, name.database, name.name)
    stays = entry is not None and entry.base is not None and same_place(entry.base, base)
    if not stays:
        refuse_place_in_a_table(name, base)
    if entry is not None and entry.base is not None and not stays:
        refuse_place_of_another(warehouse, session, name, base)
        replace = False
    return make_under_name(warehouse, session, place, entry, partial(make, replace=replace))


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
        "{} moved to {}; the files at {} are left there, remove them when they are no longer read",
        name.name,
        place.base,
        entry.base,
    )

"""Which tables a query names and reads; what others commit to a table that is read and changed is a conflict."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from hudi_engine.errors import TableNotFoundError
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.format.storage.uris import same_place
from hudi_engine.spark.catalog import TableName
from hudi_engine.spark.catalog.entry import READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.jvm.catalog import invalidate_cached_tables
from hudi_engine.spark.jvm.frames import analyzed_plan
from hudi_engine.spark.jvm.plans import JavaPlan
from hudi_engine.spark.sql.query import mentioned_tables
from hudi_engine.spark.sql.statement import Statement, Target
from hudi_engine.spark.sql.warehouse import Warehouse
from hudi_engine.table.snapshot.manifest import current_manifest
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.swap import table_storage

_SUBQUERIES = frozenset(("ScalarSubquery", "ListQuery", "Exists"))
_SUFFIXES = ("", READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX)


_META_VIEW = "dbt_hudi_meta"


def meta_view(table: TableName) -> str:
    """Return how the name of a temporary view begins that has a table's rows with their meta columns."""
    return f"{_META_VIEW}_{hashlib.sha256(table.label.lower().encode()).hexdigest()[:16]}"


def reads_table(frame: DataFrame, table: TableName, *, bounds: bool = True) -> bool:
    """Tell whether a query reads a table, itself or through views.

    Args:
        bounds: Whether it counts where all that is read of the table is one value that a filter compares rows with, as in
            ``where at > (select max(at) from ...)``.
    """
    faces = [table.with_suffix(suffix) for suffix in _SUFFIXES]
    wanted, views = {each.label.lower() for each in faces}, tuple(map(meta_view, faces))
    found = _read_tables(analyzed_plan(frame), {}, bounds)
    return any(label in wanted or label.startswith(views) for label in found)


def _read_tables(node: JavaPlan, definitions: dict[int, JavaPlan], bounds: bool) -> Iterator[str]:
    """Give the names of the tables and views that a plan reads, in lower case; a WITH counts where it is used."""
    kind = plans.kind(node)
    below = [*plans.items(node.children()), *plans.items(node.subqueries())]
    if kind == "WithCTE":
        definitions.update((int(each.id()), each) for each in plans.items(node.cteDefs()))
        below = [node.plan()]
    elif kind == "CTERelationRef":
        used = definitions.pop(int(node.cteId()), None)
        below = [] if used is None else [used]
    elif kind == "SubqueryAlias":
        if qualifier := plans.texts(node.identifier().qualifier()):
            yield f"{qualifier[-1]}.{node.alias()}".lower()
        elif str(node.alias()).startswith(_META_VIEW):
            yield str(node.alias())
    elif kind == "Filter" and not bounds:
        compared = [*_single_values(node.condition())]
        below = [each for each in below if each not in compared]
    for each in below:
        yield from _read_tables(each, definitions, bounds)


def _single_values(condition: JavaPlan) -> Iterator[JavaPlan]:
    """Give the plans of a condition's subqueries that have one value, the same for all rows."""
    for each in plans.nodes(condition):
        if plans.kind(each) == "ScalarSubquery" and each.outerAttrs().isEmpty():
            yield each.plan()


class Written(Protocol):
    """What rows are written to: schema, name and folder of a table."""

    @property
    def schema(self) -> str:
        """Schema."""

    @property
    def name(self) -> str:
        """Table."""

    @property
    def base(self) -> str:
        """Folder."""


# --- queries --------------------------------------------------------------------------------------------------------


def with_state_read(
    warehouse: Warehouse,
    session: SparkSession,
    written: Written,
    code: str,
    analysed: Callable[[], DataFrame],
) -> tuple[DataFrame, TableState | None]:
    """Return the rows of a query that are written to a table, and the table as it was before they were read from it.

    None where the query reads none of its rows, or does not name the table, as through a view alone. That a filter compares the
    rows of other tables with one value of it, as the newest time that it has, makes no row: the table takes those rows whatever
    others write meanwhile.

    Args:
        written: The model, or the table of a statement.
        analysed: Has Spark analyse it, which fixes the files that are read.
    """
    before = shown_state(warehouse, session, written) if written.name.lower() in code.lower() else None
    frame = analysed()
    if before is None or not reads_table(frame, TableName(written.schema, written.name), bounds=False):
        return frame, None
    return frame, before


def statement_with_state_read(
    warehouse: Warehouse,
    session: SparkSession,
    written: Written,
    analysed: Callable[[], DataFrame],
) -> tuple[DataFrame, TableState | None]:
    """Do what `with_state_read` does, also for views over the table; only a query that reads it is analysed again."""
    frame = analysed()
    if not reads_table(frame, TableName(written.schema, written.name), bounds=False):
        return frame, None
    before = shown_state(warehouse, session, written)
    return (frame if before is None else analysed()), before


def shown_state(warehouse: Warehouse, session: SparkSession, written: Written) -> TableState | None:
    """Return a table, which Spark then reads so or newer; None where it is not there, or not where it is written to."""
    base = warehouse.hudi_base(session, written.schema, written.name)
    if base is None or not same_place(base, written.base):
        return None
    try:
        state = TableState.load(table_storage(base))
    except TableNotFoundError:
        # the query reports it, or a build makes the table again
        return None
    if current_manifest(state.storage, state.timeline, state.config) is None:
        warehouse.show(session, written.schema, written.name, warehouse.table(session, base))
    invalidate_cached_tables(session)
    return state


# --- subqueries in conditions ---------------------------------------------------------------------------------------


def shown_for_condition(
    warehouse: Warehouse,
    session: SparkSession,
    written: Written,
    texts: Iterable[str],
    *,
    bounds: bool = True,
) -> TableState | None:
    """Return the table as it was before subqueries of conditions read it; None where none of them does.

    Args:
        bounds: Whether it counts where all that is read of the table is one value, the same for all rows, as in
            ``at > (select max(at) from ...)``; Spark is shown the table all the same.
    """
    table = TableName(written.schema, written.name)
    reading = [
        each
        for text in texts
        for each in _subqueries_of(session, text)
        if _any_is_read(session, table, _names_in([each]))
    ]
    if not reading:
        return None
    state = shown_state(warehouse, session, written)
    return state if bounds or not all(_has_one_value(session, each) for each in reading) else None


def state_for_subqueries(
    statement: Statement, target: Target, condition: JavaPlan | None = None
) -> TableState | None:
    """Return the table before subqueries of a statement, or of one condition, read it; None where none does."""
    names = _other_names(statement) if condition is None else _names_in(_subqueries(condition))
    if not _any_is_read(statement.session, TableName(target.schema, target.name), names):
        return None
    return shown_state(statement.warehouse, statement.session, target)


def with_newest_source(
    statement: Statement, target: Target, decide: Callable[[DataFrame], DataFrame]
) -> Callable[[DataFrame], DataFrame]:
    """Return the decision of a MERGE, which shows Spark the newest table first where the source reads it."""
    if not _any_is_read(statement.session, TableName(target.schema, target.name), _other_names(statement)):
        return decide

    def decided(stored: DataFrame) -> DataFrame:
        shown_state(statement.warehouse, statement.session, target)
        return decide(stored)

    return decided


def _other_names(statement: Statement) -> list[list[str]]:
    """Return the names of tables and views behind that of the target, which an UPDATE, DELETE or MERGE has first."""
    _, *others = sorted(mentioned_tables(statement.plan))
    return [parts for _, _, parts, _ in others]


def _subqueries(condition: JavaPlan) -> Iterator[JavaPlan]:
    return (each for each in plans.nodes(condition) if plans.kind(each) in _SUBQUERIES)


def _subqueries_of(session: SparkSession, text: str) -> list[JavaPlan]:
    if "select" not in text.lower() and "from" not in text.lower():
        return []
    try:
        return list(_subqueries(plans.parse_expression(session, text)))
    except PySparkException:
        return []  # which is reported where the condition is evaluated


def _names_in(queries: Iterable[JavaPlan]) -> list[list[str]]:
    return [parts for each in queries for *_, parts, _ in mentioned_tables(each.plan())]


def _any_is_read(session: SparkSession, table: TableName, names: Iterable[list[str]]) -> bool:
    """Tell whether one of some names is that of a table, or of a view which reads it."""
    for parts in names:
        try:
            frame = session.table(".".join(map(quoted, parts)))
        except AnalysisException:
            continue  # files, or nothing, which Spark reports
        if reads_table(frame, table):
            return True
    return False


def _has_one_value(session: SparkSession, subquery: JavaPlan) -> bool:
    if plans.kind(subquery) != "ScalarSubquery":
        return False
    try:
        plans.frame(session, subquery.plan())
    except AnalysisException:
        return False  # it names columns of the rows around it
    return True

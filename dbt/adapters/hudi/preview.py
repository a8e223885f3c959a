"""A dbt run that is planned (``dbt-hudi plan``): what each node would write, and the rows that its table would have."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dbt_common.events.contextvars import get_node_info
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.schema.meta_fields import META_FIELDS
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.format.storage.planned import planned_writes
from hudi_engine.spark.catalog.entry import READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.jvm.frames import analyzed_plan
from hudi_engine.spark.sql.query import with_texts
from hudi_engine.spark.sql.statement import own_name
from hudi_engine.spark.sql.statements import QUERIES, first_keyword
from hudi_engine.table.write.result import WriteResult
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.hudi.run import RUNS

_RUN = QUERIES | {"", "describe", "desc", "show", "explain", "set", "reset", "use", "list"}
_RUN |= {"cache", "uncache", "clear", "refresh"}
_TEMPORARY = re.compile(r"create\s+(or\s+replace\s+)?(global\s+)?temp(orary)?\s", re.IGNORECASE)
_INSERT = re.compile(r"\binsert\s+(into|overwrite)\b", re.IGNORECASE)
_BUILDS = (WriteOperation.BULK_INSERT.value, WriteOperation.INSERT_OVERWRITE_TABLE.value)
_HOOK = "operation."
"""How the ids of ``on-run-start`` and ``on-run-end`` begin."""
_AFTER = "in post-hook"
_GLOBAL, _ROWS_TO_BE = "global_temp", "dbt_hudi_planned_"
_FACE = re.compile(f"(?:{READ_OPTIMIZED_SUFFIX}|{REALTIME_SUFFIX})$")
_META = re.compile(rf"\b(?:{'|'.join(META_FIELDS)})\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")


class UnknownRowsError(DbtRuntimeError):
    """What a node would do is not known, as it depends on rows that are not."""


@dataclass
class PlannedNode:
    """What a node of the run would do.

    Args:
        does: In words, such as ``create view``; ``""`` for a write, which ``writes`` describe.
        writes: Its planned writes, several of a microbatch model.
        set_aside: Rows that would go to its error table.
        unknown: Why it is not known what the node does.
        left_out: What its hooks would write after it, such as ``DELETE``.
        rows_deleted: Rows of a table that makes room for a view.
    """

    does: str = ""
    writes: list[WriteResult] = field(default_factory=list)
    set_aside: int = 0
    unknown: str = ""
    left_out: list[str] = field(default_factory=list)
    rows_deleted: int = 0


class Preview:
    """The nodes of a planned run, by unique id; safe to use from all of dbt's threads. It is off in any other command.

    Attributes:
        left_out: Statements that would have run outside of nodes, such as those of ``on-run-start``.
    """

    def __init__(self) -> None:
        self.is_on = False
        self.nodes: dict[str, PlannedNode] = {}
        self.left_out: list[str] = []
        self._views: dict[tuple[str, str], str | None] = {}
        # of statements that are left out: among them the names of the tables that they change
        self._words: set[str] = set()
        self._lock = threading.RLock()

    @contextmanager
    def of_run(self, examples: int) -> Iterator[None]:
        """Plan what dbt runs in this block, and write nothing.

        Args:
            examples: How many rows of each kind of change are shown.
        """
        self.nodes, self.left_out, self._views, self._words, self.is_on = {}, [], {}, set(), True
        try:
            with planned_writes(examples, everywhere=True):
                yield
        finally:
            self.is_on = False

    # --- what nodes do ------------------------------------------------------------------------------------------

    def note_write(self, result: WriteResult, set_aside: int) -> None:
        """Note a write of the node that dbt is at."""
        node = self._node()
        if node is not None and result.plan is not None:
            if self._own()[1] in self._words:
                self._note_unknown(node, "a statement that a plan does not run names its table")
            node.writes.append(result)
            node.set_aside += set_aside

    @property
    def rebuilds(self) -> bool:
        """Whether the node that dbt is at has a planned write that makes its table: a later batch goes into that one."""
        node = self._node()
        return node is not None and any(each.operation in _BUILDS for each in node.writes)

    def note_action(self, does: str, rows_deleted: int = 0) -> None:
        """Note what the node that dbt is at does where it writes no rows."""
        node = self._node()
        if node is not None:
            node.does, node.rows_deleted = does, rows_deleted

    def runs(self, statement: str) -> bool:
        """Whether a statement is run: queries, and what changes nothing but the session; any other one is left out, and noted.

        What a node would do by such a statement is not known.
        """
        if not self.is_on:
            return True
        keyword = first_keyword(statement)
        inserts = keyword in ("with", "from") and _INSERT.search(statement)
        if (keyword in _RUN and not inserts) or (keyword == "create" and _TEMPORARY.search(statement)):
            return True
        self.leave_out(keyword.upper(), statement)
        return False

    def leave_out(self, what: str, names: str) -> None:
        """Note a statement or operation that would write and is not run; what the node would do without it is not known.

        The hooks after a node change nothing of its own write, but the rows that others read of it. Nodes that read or write a
        table that the statement names are not known either.

        Args:
            names: The statement, or the tables that the operation is on.
        """
        self._words.update(_WORD.findall(names.lower()))
        node, hook = self._node(), RUNS.current().hook
        if node is None:
            self.left_out.append(what)
        elif hook.startswith(_AFTER):
            node.left_out.append(what)
            self._note_rows_unknown()
        else:
            self._note_unknown(node, f"its {what} is not run by a plan")

    def refuse(self, why: str) -> None:
        """Say of the node that dbt is at that it cannot be planned; raises UnknownRowsError, in any other command nothing."""
        if not self.is_on:
            return
        node = self._node()
        if node is not None:
            self._note_unknown(node, why)
        raise UnknownRowsError(why)

    def _note_unknown(self, node: PlannedNode, why: str) -> None:
        node.unknown = why
        self._note_rows_unknown()

    def _note_rows_unknown(self) -> None:
        relation = get_node_info().get("node_relation") or {}
        name = str(relation.get("alias") or "")
        if name:
            self._views[str(relation.get("schema") or "").lower(), name.lower()] = None

    def _node(self) -> PlannedNode | None:
        unique_id = str(get_node_info().get("unique_id") or "")
        if not self.is_on or not unique_id or unique_id.startswith(_HOOK):
            return None
        with self._lock:
            return self.nodes.setdefault(unique_id, PlannedNode())

    # --- rows to be ---------------------------------------------------------------------------------------------

    def note_rows(self, schema: str, name: str, rows: DataFrame | None) -> None:
        """Note the rows that a table or view would have, None where they are not known."""
        if not self.is_on:
            return
        view = None
        if rows is not None:
            view = f"{_ROWS_TO_BE}{uuid.uuid4().hex}"
            rows.createOrReplaceGlobalTempView(view)
        self._views[schema.lower(), name.lower()] = view

    def note_change(self, schema: str, name: str, result: WriteResult, rows: DataFrame | None) -> None:
        """Note the rows that a table would have after a write, None where they are not known; they stay if nothing changes."""
        changes = result.rows_inserted + result.rows_updated + result.rows_deleted
        if changes or (result.plan is not None and result.plan.columns):
            self.note_rows(schema, name, rows)

    def check_unchanged(self, schema: str, name: str, why: str, session: SparkSession | None = None) -> None:
        """Refuse to plan the node that dbt is at where a table that it needs as it is on storage would change.

        Args:
            session: Looks up the tables behind a view; None where the name is that of a table.
        """
        if self._changes(schema.lower(), name.lower()):
            self.refuse(f"{why} {schema}.{name}, which this run changes")
        if session is not None:
            self._check_behind(session, [schema, name])

    def check_conditions(self, session: SparkSession, conditions: Sequence[str]) -> None:
        """Refuse to plan the node that dbt is at where SQL of its config reads a table that this run changes."""
        for each in conditions if self.is_on else ():
            query = f"select 1 where {each}"
            if self.in_statement(session, query) != query:
                self.refuse(f"its config reads a table that this run changes: {each}")

    def in_statement(self, session: SparkSession, statement: str) -> str:
        """Return a query that reads the rows to be where it names tables and views that the run changes.

        Refuses to plan the node that dbt is at where the query reads such a table by another way: a view, or a table function.
        """
        if not (self._views or self._words):
            return statement
        own = self._own()

        def instead(parts: list[str], has_alias: bool) -> str | None:
            named = own_name(session, parts)
            if named is None:
                return None
            key = (named[0].lower(), named[1].lower())
            if key == own:
                return None
            if key not in self._views:
                self._check_behind(session, parts)
                return None
            if _META.search(statement):
                self.refuse(f"it reads Hudi's columns of {'.'.join(key)}, which a plan has no values of")
            view = self._view(*key)
            return view if has_alias else f"{view} as {quoted(parts[-1])}"

        try:
            plan = plans.parse(session, statement)
        except PySparkException:
            return statement  # Spark runs it, and reports what is wrong with it
        self._check_functions(plan)
        return with_texts(statement, plan, instead) if first_keyword(statement) in QUERIES else statement

    def shown_for(self, schema: str | None, name: str | None) -> str | None:
        """Return the rows to be of a relation, as SQL; None where that does not change."""
        key = (str(schema or "").lower(), str(name or "").lower())
        return None if key == self._own() or not self._changes(*key) else self._view(*key)

    def _changes(self, schema: str, name: str) -> bool:
        """Whether a table is changed, by a node or by a statement that is left out; so are the second names of it."""
        names = (name, _FACE.sub("", name))
        return any((schema, each) in self._views or each in self._words for each in names)

    def _check_behind(self, session: SparkSession, parts: Sequence[str]) -> None:
        """Refuse to plan the node that dbt is at where a name, or the view that it is of, leads to a table that is changed."""
        name = ".".join(map(quoted, parts))
        try:
            plan = analyzed_plan(session.table(name))
        except PySparkException:
            return  # Spark runs the query, and reports it
        for key in _names(plan):
            if key != self._own() and self._changes(*key):
                self.refuse(f"it reads {'.'.join(parts)}, and rows of {'.'.join(key)} would be others there")

    def _check_functions(self, plan: plans.JavaPlan) -> None:
        """Refuse to plan the node that dbt is at where a table function takes the name of a table that is changed."""
        if plans.kind(plan) == "UnresolvedTableValuedFunction":
            words = set(_WORD.findall(str(plan.toString()).lower()))
            if words & (self._words | {name for _, name in self._views}):
                self.refuse(
                    f"it reads a table that this run changes by {'.'.join(plans.texts(plan.name()))}()"
                )
        for each in plans.below(plan):
            self._check_functions(each)

    def _view(self, schema: str, name: str) -> str:
        view = self._views.get((schema, name))
        if view is None or name in self._words:
            self.refuse(f"it reads {schema}.{name}, whose rows would be others that are not known")
        return f"{_GLOBAL}.`{view}`"

    def _own(self) -> tuple[str, str]:
        relation: Any = get_node_info().get("node_relation") or {}
        return str(relation.get("schema") or "").lower(), str(relation.get("alias") or "").lower()


def _names(plan: plans.JavaPlan) -> Iterator[tuple[str, str]]:
    """Give schema and name of the tables and views that an analysed plan reads, but not what rows to be are made of."""
    if plans.kind(plan) == "SubqueryAlias" and (schema := plans.texts(plan.identifier().qualifier())):
        name = str(plan.identifier().name()).lower()
        if name.startswith(_ROWS_TO_BE):
            return
        yield schema[-1].lower(), name
    for each in plans.below(plan):
        yield from _names(each)


PREVIEW = Preview()

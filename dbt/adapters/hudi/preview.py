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
from hudi_engine.format.storage.planned import planned_writes
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.schema.fit import quoted
from hudi_engine.spark.sql.query import with_texts
from hudi_engine.spark.sql.statements import first_keyword
from hudi_engine.table.write.result import WriteResult
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.hudi.run import RUNS

_QUERIES = frozenset(("select", "with", "from", "values", "table"))
_RUN = _QUERIES | {"", "describe", "desc", "show", "explain", "set", "reset", "use", "list"}
_RUN |= {"cache", "uncache", "clear", "refresh"}
_TEMPORARY = re.compile(r"create\s+(or\s+replace\s+)?(global\s+)?temp(orary)?\s", re.IGNORECASE)
_INSERT = re.compile(r"\binsert\s+(into|overwrite)\b", re.IGNORECASE)
_HOOK = "operation."
"""How the ids of ``on-run-start`` and ``on-run-end`` begin."""
_AFTER = "in post-hook"
_GLOBAL = "global_temp"


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
    """

    does: str = ""
    writes: list[WriteResult] = field(default_factory=list)
    set_aside: int = 0
    unknown: str = ""
    left_out: list[str] = field(default_factory=list)


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
        self._lock = threading.RLock()

    @contextmanager
    def of_run(self, examples: int) -> Iterator[None]:
        """Plan what dbt runs in this block, and write nothing.

        Args:
            examples: How many rows of each kind of change are shown.
        """
        self.nodes, self.left_out, self._views, self.is_on = {}, [], {}, True
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
            node.writes.append(result)
            node.set_aside += set_aside

    def note_action(self, does: str) -> None:
        """Note what the node that dbt is at does where it writes no rows."""
        node = self._node()
        if node is not None:
            node.does = does

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
        self.leave_out(keyword.upper())
        return False

    def leave_out(self, what: str) -> None:
        """Note a statement or operation that would write and is not run; what the node would do without it is not known.

        The hooks after a node change nothing of its own write, but the rows that others read of it.
        """
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
            view = f"dbt_hudi_planned_{uuid.uuid4().hex}"
            rows.createOrReplaceGlobalTempView(view)
        self._views[schema.lower(), name.lower()] = view

    def note_change(self, schema: str, name: str, result: WriteResult, rows: DataFrame | None) -> None:
        """Note the rows that a table would have after a write, None where they are not known; they stay if nothing changes."""
        changes = result.rows_inserted + result.rows_updated + result.rows_deleted
        if changes or (result.plan is not None and result.plan.columns):
            self.note_rows(schema, name, rows)

    def check_unchanged(self, schema: str, name: str, why: str) -> None:
        """Refuse to plan the node that dbt is at where a table that it needs as it is on storage would change."""
        if (schema.lower(), name.lower()) in self._views:
            self.refuse(f"{why} {schema}.{name}, which this run changes")

    def in_statement(self, session: SparkSession, statement: str) -> str:
        """Return a query that reads the rows to be where it names tables and views that the run changes."""
        if not self._views or first_keyword(statement) not in _QUERIES:
            return statement
        own = self._own()

        def instead(parts: list[str], has_alias: bool) -> str | None:
            lowered = [part.lower() for part in parts[-2:]]
            key = (session.catalog.currentDatabase().lower(), *lowered) if len(lowered) == 1 else (*lowered,)
            if key == own or key not in self._views:
                return None
            view = self._view(key[0], key[1])
            return view if has_alias else f"{view} as {quoted(parts[-1])}"

        try:
            plan = plans.parse(session, statement)
        except PySparkException:
            return statement  # Spark runs it, and reports what is wrong with it
        return with_texts(statement, plan, instead)

    def shown_for(self, schema: str | None, name: str | None) -> str | None:
        """Return the rows to be of a relation, as SQL; None where that does not change."""
        key = (str(schema or "").lower(), str(name or "").lower())
        return None if key == self._own() or key not in self._views else self._view(*key)

    def _view(self, schema: str, name: str) -> str:
        view = self._views[schema, name]
        if view is None:
            self.refuse(f"it reads {schema}.{name}, whose rows would be others that are not known")
        return f"{_GLOBAL}.`{view}`"

    def _own(self) -> tuple[str, str]:
        relation: Any = get_node_info().get("node_relation") or {}
        return str(relation.get("schema") or "").lower(), str(relation.get("alias") or "").lower()


PREVIEW = Preview()


def together(writes: Sequence[WriteResult], name: str) -> int:
    """Return the sum of a count over the writes of a node, by its name in results or plans of writes."""
    return sum(getattr(each if hasattr(each, name) else each.plan, name) for each in writes)

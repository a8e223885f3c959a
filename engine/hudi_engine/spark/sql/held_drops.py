"""A DROP TABLE whose CREATE TABLE follows, run as one replacement, so that readers never miss the table.

Clients such as dbt rebuild a table by two statements. The drop of a Hudi table is held: a CREATE TABLE of its name in the same
session replaces the table in one step. Any other statement of the session that could notice the table, a statement of another
session that would change it, the end of the session and a time limit carry the drop out.
"""

from __future__ import annotations

import logging
import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

from pyspark.sql import SparkSession

from hudi_engine.errors import StatementError, TableNotFoundError
from hudi_engine.format.timeline.instant import WRITE_ACTIONS
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.jvm.errors import SPARK_ERRORS
from hudi_engine.spark.sql.ddl import makes_hudi_table
from hudi_engine.spark.sql.statement import OtherCatalogError, Statement, Target
from hudi_engine.spark.sql.statements import QUERIES, first_keyword, outer_words, without_comments
from hudi_engine.spark.sql.warehouse import StatementWarehouse

_log = logging.getLogger(__name__)
# Statements that may show or need the table without its name.
_NOTICE_ALL = frozenset("show describe desc drop analyze call".split())
_BEFORE_QUERIES = frozenset(("with", "from"))
# Statements that leave the tables of other sessions as they are.
_READS = QUERIES - _BEFORE_QUERIES | set("show describe desc explain use set reset refresh uncache".split())
# Statements that the engine reads where Spark's parser does not.
_UNPARSED = ("show", "call")
_CREATES = ("CreateTable", "CreateTableAsSelect")
Name = tuple[str, str]


@dataclass(eq=False)
class HeldDrop:
    """A DROP TABLE that waits; ``commits``: those of the table when it was dropped, by which it is known again."""

    owner: HeldDrops
    name: Name
    base: str
    commits: frozenset[str]
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Let one thread carry the drop out; the others wait until the table is gone."""
    timer: threading.Timer | None = None


Holds = dict[Name, HeldDrop]
"""The drops that all sessions of a process hold."""


class HeldDrops:
    """The drops that a session holds.

    Args:
        holds: Shared by the sessions of the warehouse, which look there before they change a table.
        limit_s: Seconds after which a drop is carried out; 0 to hold none.
    """

    def __init__(
        self, session: SparkSession, warehouse: StatementWarehouse, holds: Holds, limit_s: float
    ) -> None:
        self._session = session
        self._warehouse = warehouse
        self._holds = holds
        self._limit_s = limit_s

    def take(self, statement: str) -> str | None:
        """Return the statement to run in place of one, None for one that is held; what it could notice is dropped first."""
        keyword = first_keyword(statement)
        if not self._holds and keyword != "drop":
            return statement
        parsed = self._parsed(statement)
        if parsed is None and keyword not in _UNPARSED:
            return statement  # it fails, and changes nothing
        if keyword not in _READS:
            for held in self._of_others():
                if _changes(parsed, statement, held.name):
                    self.carry_out(held)
        if parsed is not None and parsed.kind == "DropTable" and self._holds_again(parsed):
            return None
        if parsed is not None and parsed.kind in _CREATES and makes_hudi_table(parsed.plan):
            statement = self._replacing(parsed)
        code = without_comments(statement)
        for held in self._own():
            if keyword in _NOTICE_ALL or _names(code, held.name[1]) or _names(code, "information_schema"):
                self.carry_out(held)
        return statement

    def release(self) -> None:
        """Carry out all drops that the session holds."""
        for held in self._own():
            self.carry_out(held)

    def carry_out(self, held: HeldDrop) -> None:
        """Drop the table of a drop that is held still, unless its name has another table or newer commits by now."""
        with held.lock:
            if self._holds.get(held.name) is not held:
                return
            try:
                with self._warehouse.one_writer(self._session, held.base):
                    if self._is_unchanged(held):
                        self._warehouse.drop(self._session, *held.name)
                    else:
                        _log.warning(
                            "the DROP TABLE of %s.%s, which was held, is not carried out: another writer has changed or "
                            "replaced the table since; drop it again if it is to go",
                            *held.name,
                        )
            finally:
                self._forget(held)

    def _own(self) -> list[HeldDrop]:
        return [held for held in list(self._holds.values()) if held.owner is self]

    def _of_others(self) -> list[HeldDrop]:
        return [held for held in list(self._holds.values()) if held.owner is not self]

    def _forget(self, held: HeldDrop) -> None:
        del self._holds[held.name]
        if held.timer is not None:
            held.timer.cancel()

    def _holds_again(self, parsed: Statement) -> bool:
        """Tell whether a DROP TABLE is held, from now on or already."""
        try:
            parts = plans.target_parts(parsed.plan.child())[0]
            name = None if parsed.lasting(parts) is None else _resolved(parsed, parts)
            held = None if name is None else self._holds.get(name)
            if held is not None and held.owner is self:
                return bool(parsed.plan.ifExists())
            target = parsed.target() if self._limit_s else None
            return target is not None and not target.is_face and self._hold(target)
        except (OtherCatalogError, StatementError):
            return False  # it is Spark's to run, or fails

    def _hold(self, target: Target) -> bool:
        name = (target.schema.lower(), target.name.lower())
        # writes that have begun end before, as they would for a drop that is not held
        with self._warehouse.one_writer(self._session, target.base):
            held = HeldDrop(self, name, target.base, self._commits(target.base))
            held.timer = threading.Timer(self._limit_s, self._expire, [held])
            held.timer.daemon = True
            if self._holds.setdefault(name, held) is not held:
                return False
        held.timer.start()
        _log.info(
            "DROP TABLE %s.%s is held for the CREATE TABLE that may follow in this session, for %g s at most",
            *name,
            self._limit_s,
        )
        return True

    def _expire(self, held: HeldDrop) -> None:
        try:
            self.carry_out(held)
        except Exception as error:
            _log.warning("the DROP TABLE of %s.%s, which was held, failed: %s", *held.name, error)

    def _commits(self, base: str) -> frozenset[str]:
        try:
            timeline = self._warehouse.table(self._session, base).timeline()
        except TableNotFoundError as error:
            raise StatementError(f"no Hudi table is at {base}") from error
        return frozenset(
            each.requested_time for each in timeline if each.is_completed and each.action in WRITE_ACTIONS
        )

    def _is_unchanged(self, held: HeldDrop) -> bool:
        """Tell whether the name has the table that was dropped, with no commit since; archiving may have taken old ones away."""
        if self._warehouse.hudi_base(self._session, *held.name) != held.base:
            return False
        try:
            commits = self._commits(held.base)
        except StatementError:
            return False
        return commits <= held.commits and bool(commits) == bool(held.commits)

    def _replacing(self, parsed: Statement) -> str:
        """Return a CREATE TABLE as one that replaces the table whose drop the session holds, any other as it is."""
        name = next(iter(_changed(parsed)), None)
        held = None if name is None else self._holds.get(name)
        words = list(islice(outer_words(parsed.text), 5))
        if held is None or held.owner is not self or [word for _, word in words[:2]] != ["create", "table"]:
            return parsed.text
        with held.lock:
            if self._holds.get(held.name) is not held or not self._is_unchanged(held):
                return parsed.text
            self._forget(held)
        _log.info("%s.%s is replaced in one step by the CREATE TABLE after its DROP TABLE", *held.name)
        start, word = words[4 if parsed.plan.ignoreIfExists() else 1]
        return f"{parsed.text[: words[0][0]]}create or replace table{parsed.text[start + len(word) :]}"

    def _parsed(self, statement: str) -> Statement | None:
        try:
            plan = plans.parse(self._session, statement)
        except SPARK_ERRORS:
            return None  # Spark reports it when the statement is run
        return Statement(self._session, statement, plan, self._warehouse, set())


def _changes(parsed: Statement | None, statement: str, name: Name) -> bool:
    """Tell whether a statement may write to, make, rename or drop a table."""
    schema, table = name
    if parsed is not None and parsed.kind == "DropNamespace":
        return _names(without_comments(statement), schema)
    # a procedure has the name of its table in a text
    changed = [] if parsed is None or parsed.kind == "Call" else _changed(parsed)
    if changed or first_keyword(statement) in _BEFORE_QUERIES:
        return name in changed
    return _names(without_comments(statement), table)


def _changed(parsed: Statement) -> list[Name | None]:
    """Return the names that a statement writes to, makes, renames or drops; none where its plan does not show them."""
    plan, methods = parsed.plan, ["targetTable", "table", "name", "child"]
    if first_keyword(parsed.text) in _BEFORE_QUERIES:
        plan = plan.child() if parsed.kind == "UnresolvedWith" else plan
        methods = methods[:2]  # what is below the plan of a query is read
    given = []
    method = next((each for each in methods if plans.hasattr_java(plan, each)), None)
    if method is not None:
        with suppress(StatementError):
            given.append(plans.target_parts(getattr(plan, method)())[0])
    if given and plans.hasattr_java(plan, "newName"):
        given.append(plans.texts(plan.newName()))
    return [_resolved(parsed, parts) for parts in given]


def _resolved(parsed: Statement, parts: list[str]) -> Name | None:
    """Return a name as drops are held by it, None for one of another catalog."""
    try:
        schema, name = parsed.names(parts)
    except OtherCatalogError:
        return None
    return schema.lower(), name.lower()


def _names(code: str, name: str) -> bool:
    """Tell whether a text has a name, or a read-only face of it, as a whole word, in whatever quotes."""
    return re.search(rf"(?<!\w){re.escape(name)}(_ro|_rt)?(?!\w)", code, re.IGNORECASE) is not None

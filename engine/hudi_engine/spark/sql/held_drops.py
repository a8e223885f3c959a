"""A DROP TABLE whose CREATE TABLE follows, run as one replacement, so that readers never miss the table.

Clients such as dbt rebuild a table by two statements. The drop of a Hudi table is held: a CREATE TABLE of its name in the same
session replaces the table in one step. Any other statement that could notice the table, the end of the session and a time
limit carry the drop out.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from pyspark.sql import SparkSession

from hudi_engine.spark.jvm import plans
from hudi_engine.spark.jvm.errors import SPARK_ERRORS
from hudi_engine.spark.sql.ddl import makes_hudi_table
from hudi_engine.spark.sql.statement import OtherCatalogError, Statement
from hudi_engine.spark.sql.statements import first_keyword, first_word
from hudi_engine.spark.sql.warehouse import StatementWarehouse

_log = logging.getLogger(__name__)
# Statements that may show or need the table without its name.
_NOTICE_ALL = frozenset("show describe desc drop analyze call".split())
_CREATES = ("CreateTable", "CreateTableAsSelect")
Name = tuple[str, str]


class HeldDrops:
    """The drops that a session holds.

    Args:
        carry_out: Runs a statement that drops a table.
        limit_s: Seconds after which a drop is carried out; 0 to hold none.
    """

    def __init__(
        self,
        session: SparkSession,
        warehouse: StatementWarehouse,
        carry_out: Callable[[str], None],
        limit_s: float,
    ) -> None:
        self._session = session
        self._warehouse = warehouse
        self._carry_out = carry_out
        self._limit_s = limit_s
        self._held: dict[Name, tuple[str, threading.Timer]] = {}
        self._lock = threading.RLock()

    def take(self, statement: str) -> str | None:
        """Return the statement to run in place of one, None for one that is held; what it could notice is dropped first."""
        if not self._limit_s:
            return statement
        keyword = first_keyword(statement)
        if keyword == "drop":
            name = self._dropped(statement)
            if name is not None:
                self.release(name)
                self._hold(name, statement)
                return None
        if not self._held:
            return statement
        if keyword == "create":
            name = self._created(statement)
            if name is not None and self._forget(name):
                _log.info("%s.%s is replaced in one step by the CREATE TABLE after its DROP TABLE", *name)
                start = first_word(statement)
                return f"{statement[:start]}create or replace{statement[start + len('create') :]}"
        text = statement.lower()
        for name in list(self._held):
            if keyword in _NOTICE_ALL or name[1] in text or "information_schema" in text:
                self.release(name)
        return statement

    def release(self, name: Name | None = None) -> None:
        """Carry out the drop of a table, or all that are held."""
        for each in list(self._held) if name is None else [name]:
            statement = self._forget(each)
            if statement is not None:
                self._carry_out(statement)

    def _hold(self, name: Name, statement: str) -> None:
        timer = threading.Timer(self._limit_s, self._expire, [name])
        timer.daemon = True
        with self._lock:
            self._held[name] = statement, timer
        timer.start()
        _log.info(
            "DROP TABLE %s.%s is held for the CREATE TABLE that may follow in this session, for %g s at most",
            *name,
            self._limit_s,
        )

    def _expire(self, name: Name) -> None:
        try:
            self.release(name)
        except Exception as error:
            _log.warning("the DROP TABLE of %s.%s, which was held, failed: %s", *name, error)

    def _forget(self, name: Name) -> str | None:
        with self._lock:
            statement, timer = self._held.pop(name, (None, None))
        if timer is not None:
            timer.cancel()
        return statement

    def _dropped(self, statement: str) -> Name | None:
        """Return the Hudi table that a DROP TABLE drops, None for anything else."""
        parsed = self._parsed(statement)
        if parsed is None or parsed.kind != "DropTable":
            return None
        try:
            target = parsed.target()
        except OtherCatalogError:
            return None
        return None if target is None or target.is_face else (target.schema.lower(), target.name.lower())

    def _created(self, statement: str) -> Name | None:
        """Return the name that a CREATE TABLE makes a Hudi table of, None for anything else."""
        parsed = self._parsed(statement)
        if parsed is None or parsed.kind not in _CREATES or not makes_hudi_table(parsed.plan):
            return None
        try:
            schema, name = parsed.names(plans.texts(parsed.plan.name().nameParts()))
        except OtherCatalogError:
            return None
        return None if parsed.plan.ignoreIfExists() else (schema.lower(), name.lower())

    def _parsed(self, statement: str) -> Statement | None:
        try:
            plan = plans.parse(self._session, statement)
        except SPARK_ERRORS:
            return None  # Spark reports it when the statement is run
        return Statement(self._session, statement, plan, self._warehouse, set())

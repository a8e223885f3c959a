"""Connection handle and cursor over a Spark session of this process."""

from __future__ import annotations

import datetime
import decimal
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.events.contextvars import get_node_info
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.spark.jvm.catalog import invalidate_cached_tables
from hudi_engine.spark.jvm.frames import is_done
from hudi_engine.spark.jvm.session import is_stopped
from hudi_engine.spark.read.small_plans import interpreted_if_small
from hudi_engine.spark.sql.jobs import JobGroup
from hudi_engine.spark.sql.router import StatementRouter
from hudi_engine.spark.sql.statements import split_statements
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import types as T

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.preview import PREVIEW
from dbt.adapters.hudi.response import write_response
from dbt.adapters.hudi.spark.errors import dbt_errors
from dbt.adapters.hudi.spark.lent import jobs_of_process
from dbt.adapters.hudi.spark.long_work import LONG_WORK

_INTERRUPTED = "cancelled: this run was interrupted, nothing more is started"
_DESCRIPTION_LENGTH = 200
_QUERY_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


class StandIn(Protocol):
    """Is read in place of a table."""

    def in_statement(self, session: SparkSession, statement: str) -> str:
        """Return the statement with another name in place of the table's."""

    def shown_for(self, schema: str | None, name: str | None) -> str | None:
        """Return the other name of a relation, as SQL; None for one that is another table."""


class HudiHandle:
    """One dbt connection.

    Args:
        open_session: Makes the connection's Spark session on first use.
        writes: Counts commits of this process; when it moved, what the session remembers of table files is stale.
        prepare: Called before each piece of work, to make names known that it may use.
    """

    # what is read in place of the table that is being written, while its tests run before the commit
    stand_in: StandIn | None = None

    def __init__(
        self,
        open_session: Callable[[], SparkSession],
        router: StatementRouter,
        writes: Callable[[], int],
        prepare: Callable[[SparkSession], None],
    ) -> None:
        self._open_session = open_session
        self._writes = writes
        self._prepare = prepare
        self._seen_writes: int | None = None
        self._session: SparkSession | None = None
        self._views: set[str] = set()
        self._watched = False
        self.router = router
        self._jobs = JobGroup(f"{jobs_of_process()}{uuid.uuid4()}")

    @contextmanager
    def job(self, description: str) -> Iterator[SparkSession]:
        """Lend the session, with every Spark job started inside belonging to this connection and cancellable."""
        self._go_on()
        with self._reason_of_end(), dbt_errors(description):
            if self._session is None:
                self._session = self._open_session()
                # Spark takes seconds to start, and nothing of it could be stopped till now
                self._go_on()
            self._prepare(self._session)
            if self._seen_writes != self._writes():
                self._seen_writes = self._writes()
                invalidate_cached_tables(self._session)
            self._jobs.enter(self._session, _shown(description))
            if self._watched:
                yield self._session
                return
            self._watched = True
            try:
                with LONG_WORK.watched(self._session, self._jobs.name, description):
                    yield self._session
            finally:
                self._watched = False

    def _go_on(self) -> None:
        if self._jobs.cancelled:
            raise DbtDatabaseError(self._jobs.cancelled)

    @contextmanager
    def _reason_of_end(self) -> Iterator[None]:
        """Raise why a node was ended, where that is its time, in place of the error that its jobs met."""
        try:
            yield
        except DbtRuntimeError as error:
            if self._jobs.cancelled in ("", _INTERRUPTED):
                raise
            raise DbtDatabaseError(self._jobs.cancelled) from error

    def end_after(self, seconds: int) -> threading.Timer:
        """End the node of this connection when it has run so long; the timer's ``cancel`` lifts the limit."""
        why = (
            f"the run took longer than job_execution_timeout_seconds: {seconds}; its Spark jobs were cancelled, and a write that "
            "was under way is taken back"
        )
        timer = threading.Timer(seconds, self.cancel, [why])
        timer.daemon = True
        timer.start()
        return timer

    def cursor(self) -> HudiCursor:
        """Return a cursor; each statement gets its own."""
        return HudiCursor(self)

    def with_states(self, session: SparkSession, statement: str) -> str:
        """Return a statement with temporary names of this connection in place of other states of Hudi tables."""
        return self.router.with_states(session, self.with_stand_in(session, statement), self.own_view)

    def with_stand_in(self, session: SparkSession, statement: str) -> str:
        """Return a statement with what is read in place of a table, where something is."""
        stand_in = self._stand_in
        return statement if stand_in is None else stand_in.in_statement(session, statement)

    def shown_for(self, schema: str | None, name: str | None) -> str | None:
        """Return what is read in place of a relation, as SQL; None where that is the relation itself."""
        stand_in = self._stand_in
        return None if stand_in is None else stand_in.shown_for(schema, name)

    @property
    def _stand_in(self) -> StandIn | None:
        return PREVIEW if PREVIEW.is_on else self.stand_in

    def own_view(self, stem: str) -> str:
        """Return a name for a temporary view that no other connection has, for they may share the session; it is tracked."""
        name = f"{stem}_{self._jobs.name}".replace("-", "_")
        self.track_view(name)
        return name

    def track_view(self, name: str) -> None:
        """Remember a temporary view, to be dropped with the connection."""
        self._views.add(name)

    def cancel(self, why: str = _INTERRUPTED) -> None:
        """Stop the Spark jobs of this connection, also those that start until it is closed."""
        self._jobs.cancel(why)

    def close(self) -> None:
        """Drop the connection's temporary views."""
        self._jobs.close()
        if self._session is not None and not is_stopped(self._session.sparkContext):
            for name in self._views:
                self._session.catalog.dropTempView(name)
        self._views.clear()
        self._session = None

    def rollback(self, *_: Any) -> None:
        """Spark has no transactions; dbt calls this when it closes a connection."""


def _shown(description: str) -> str:
    """Return what Spark's pages have for a job: the node that dbt runs, and what it does."""
    node = str(get_node_info().get("node_name") or "")
    text = " ".join(_QUERY_COMMENT.sub(" ", description).split())
    return f"{node} > {text}"[:_DESCRIPTION_LENGTH] if node else text[:_DESCRIPTION_LENGTH]


class HudiCursor:
    """Runs statements, keeps the result of the last one."""

    def __init__(self, handle: HudiHandle) -> None:
        self._handle = handle
        self._frame: DataFrame | None = None
        self._rows: list[Any] | None = None
        self._statement = ""
        self.response = AdapterResponse("OK")

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        """Run one or more statements of Spark SQL separated by semicolons; parameters are written ``?``."""
        self.close()
        for statement in split_statements(sql):
            with self._handle.job(statement) as session:
                self._run(session, statement, bindings)

    def _run(self, session: SparkSession, statement: str, bindings: Sequence[Any] | None) -> None:
        self._rows, self._statement = None, statement
        if PREVIEW.is_on and not PREVIEW.runs(statement):
            return
        if bindings:
            statement = self._handle.with_states(session, statement)
            self._frame = session.sql(statement, args=[_binding(value) for value in bindings])
            return
        statement = self._handle.with_stand_in(session, statement)
        result = self._handle.router.run(session, statement, self._handle.own_view)
        self._frame = result.frame
        self.response = AdapterResponse(result.name) if result.write is None else write_response(result.write)
        if result.write is not None and not get_node_info().get("unique_id"):
            logger.info("{}", str(self.response))  # of a node dbt shows it

    def run_to_end(self) -> None:
        """Run a query whose rows are not fetched; commands have run already."""
        if self._frame is None or self._rows is not None:
            return
        with self._handle.job(self._statement):
            if not is_done(self._frame):
                self._frame.write.format("noop").mode("overwrite").save()

    @property
    def description(self) -> list[tuple[str, str, None, None, None, None, bool]]:
        """Name and Spark type of each result column."""
        if self._frame is None:
            return []
        return [
            (column.name, column.dataType.simpleString(), None, None, None, None, column.nullable)
            for column in self._frame.schema.fields
        ]

    def fetchall(self) -> list[Any]:
        """All rows that were not fetched yet."""
        if self._rows is None:
            self._rows = self._collect(self._frame)
        rows, self._rows = self._rows, []
        return rows

    def fetchmany(self, size: int) -> list[Any]:
        """Return the next rows, at most ``size``."""
        if self._rows is None:
            self._rows = self._collect(None if self._frame is None else self._frame.limit(size))
        rows, self._rows = self._rows[:size], self._rows[size:]
        return rows

    def fetchone(self) -> Any | None:
        """Return the next row, None after the last."""
        if self._rows is None:
            self._rows = self._collect(self._frame)
        return self._rows.pop(0) if self._rows else None

    def close(self) -> None:
        """Forget the result."""
        self._frame, self._rows, self.response = None, None, AdapterResponse("OK")

    def _collect(self, frame: DataFrame | None) -> list[Any]:
        if frame is None:
            return []
        with self._handle.job(self._statement or "fetch"):
            with interpreted_if_small(frame, EngineOptions.SMALL_PLAN_BYTES.default):
                rows = frame.collect()
        return values_for_dbt(rows, frame.schema, frame.sparkSession.conf.get("spark.sql.session.timeZone"))


def _binding(value: Any) -> Any:
    if isinstance(value, decimal.Decimal) and value == value.to_integral_value():
        return int(value)
    return value


Converter = Callable[[Any], Any]

_UTC = frozenset({"UTC", "GMT", "UT", "Z", "ETC/UTC", "ETC/GMT", "+00:00", "-00:00", "ZULU"})
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")


def values_for_dbt(rows: list[Row], schema: T.StructType, zone: str | None) -> list[Any]:
    """Return collected rows as dbt reads them.

    A timestamp, that PySpark gives as a naive time of the host's zone, is a naive one in UTC where that is the session's zone,
    as dbt takes naive times for UTC. In another zone it carries its offset: SQL that a model makes of it, ``'{{ max_ts }}'``,
    would mean another moment without.

    Args:
        zone: The session's time zone, as Spark spells it.
    """
    shown = _zone(zone or "UTC")
    converters = [_converter(column.dataType, shown) for column in schema.fields]
    if not any(converters):
        return rows
    return [
        tuple(convert(value) if convert else value for convert, value in zip(converters, row)) for row in rows
    ]


def _zone(name: str) -> datetime.tzinfo | None:
    """Return a zone by Spark's name, None for UTC; one that is known to Java alone is UTC with its offset."""
    if name.upper() in _UTC:
        return None
    if match := _OFFSET.fullmatch(name):
        sign, *parts = match.groups()
        hours, minutes, seconds = (int(part or 0) for part in parts)
        offset = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return datetime.timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return datetime.timezone.utc


def _converter(kind: T.DataType, zone: datetime.tzinfo | None) -> Converter | None:
    """How collected values become those for dbt, also inside of arrays, maps and structs."""
    if isinstance(kind, T.TimestampType):
        return lambda value: None if value is None else _moment(value, zone)
    if isinstance(kind, T.ArrayType):
        inner = _converter(kind.elementType, zone)
        return (
            None
            if inner is None
            else lambda value: None if value is None else [inner(item) for item in value]
        )
    if isinstance(kind, T.MapType):
        # a dictionary is no key of another one
        keys = None if isinstance(kind.keyType, T.StructType) else _converter(kind.keyType, zone)
        return _map_converter(keys, _converter(kind.valueType, zone))
    if isinstance(kind, T.StructType):
        return _struct_converter(kind, zone)
    return None


def _map_converter(keys: Converter | None, values: Converter | None) -> Converter | None:
    if keys is None and values is None:
        return None
    same: Converter = lambda value: value  # noqa: E731
    key, item = keys or same, values or same
    return lambda value: None if value is None else {key(k): item(v) for k, v in value.items()}


def _struct_converter(kind: T.StructType, zone: datetime.tzinfo | None) -> Converter | None:
    """How a struct keeps the names of its fields in what dbt shows; one that has a name twice stays a row."""
    same: Converter = lambda value: value  # noqa: E731
    inner = [_converter(field.dataType, zone) or same for field in kind.fields]
    unique = len(set(kind.names)) == len(kind.names)
    build = (lambda *values: dict(zip(kind.names, values))) if unique else Row(*kind.names)
    return lambda value: (
        None if value is None else build(*(convert(item) for convert, item in zip(inner, value)))
    )


def _moment(value: datetime.datetime, zone: datetime.tzinfo | None) -> datetime.datetime:
    try:
        moment = value.astimezone(zone or datetime.timezone.utc)
    except (OverflowError, ValueError):
        return value
    return moment.replace(tzinfo=None) if zone is None else moment

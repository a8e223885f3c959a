"""Sessions of clients of Spark Connect, and what runs in them: statements of the engine's, and plans that Spark itself runs."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import grpc
from pyspark.sql import SparkSession
from pyspark.sql.connect import proto
from pyspark.sql.connect.types import pyspark_types_to_proto_types

from hudi_engine.errors import StatementError
from hudi_engine.server.connect.inner import Inner
from hudi_engine.server.connect.messages import arrow_bytes, is_reattachable, local_relation
from hudi_engine.server.connect.views import FrameViews
from hudi_engine.server.connect.writes import Writes
from hudi_engine.server.limits import ServerError
from hudi_engine.server.sessions import CANCELED, ERROR, FINISHED, RUNNING, ClientSession, Operation, Sessions
from hudi_engine.spark.jvm.connect import connect_session
from hudi_engine.spark.jvm.errors import SPARK_ERRORS
from hudi_engine.spark.sql.failure import Failure, as_failure
from hudi_engine.spark.sql.session import Rows, StatementSession

_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
_DETACHED_S = 300.0
"""Seconds without a client, after which a statement is cancelled and its result forgotten; Spark's own limit."""
RELATION, ROWS, END = "relation", "rows", "end"
_CANCELLED = "OPERATION_CANCELED"
_LEFT = "the client of the statement has gone"
Adopt = Callable[[SparkSession], StatementSession]


@dataclass(eq=False, kw_only=True)
class ConnectSession(ClientSession):
    """A session of Spark's service, on which the statements of the engine run too.

    Args:
        name: The UUID that its client chose.
        server_side: The id that Spark gave it.
        originals: By operation, the relation of a query as its client sent it.
    """

    name: str
    server_side: str
    inner: Inner
    keeps_name: bool = True
    originals: dict[str, proto.Relation] = field(default_factory=dict)
    own: dict[str, StatementRun] = field(default_factory=dict)
    writes: Writes = field(init=False)
    frames: FrameViews = field(init=False)

    def __post_init__(self) -> None:
        self.writes = Writes(self.statements)
        self.frames = FrameViews(self.statements)

    @property
    def context(self) -> proto.UserContext:
        """The user, as Spark's service knows it."""
        return proto.UserContext(user_id=self.user, user_name=self.user)

    def prepare(self, reads: Iterable[proto.Relation]) -> None:
        """Have relations that read tables, or look at the catalog, find what the session holds back carried out."""
        held = self.statements.held
        for each in reads:
            if each.HasField("read"):
                if each.read.HasField("named_table"):
                    held.take(f"table {each.read.named_table.unparsed_identifier}")
                self.writes.prepare(each)
                continue
            held.release()
            if self.writes.catalog_statement(each.catalog) is not None:
                raise StatementError(
                    "a call of the catalog that changes tables is refused inside of a DataFrame: call it by itself"
                )

    def drop(self, views: Iterable[str]) -> None:
        """Drop temporary views."""
        for each in views:
            self.statements.spark.catalog.dropTempView(each)

    def close(self) -> None:
        super().close()
        request = proto.ReleaseSessionRequest(
            session_id=self.name, user_context=self.context, allow_reconnect=self.keeps_name
        )
        with suppress(grpc.RpcError):  # Spark ends
            self.inner.unary("ReleaseSession", request.SerializeToString())


@dataclass(eq=False, kw_only=True)
class StatementRun(Operation):
    """A statement that the engine's session runs, whose answers are kept until its client releases them.

    Args:
        request: What the client sent.
        views: DataFrames that the statement names; they are temporary views as long as it runs.
        answer: What the client asked for: a relation with the rows, the rows, or the end only.
        by_partition: Whether an INSERT OVERWRITE replaces the partitions that the rows have; None for what the session says.
        at_end: Is called when the statement has run.
    """

    session: ConnectSession
    request: proto.ExecutePlanRequest
    at_end: Callable[[], None]
    views: Mapping[str, proto.Relation] = field(default_factory=dict)
    answer: str = RELATION
    by_partition: bool | None = None
    inner_error: grpc.RpcError | None = None
    _kept: list[proto.ExecutePlanResponse] | None = None
    _left: threading.Timer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def collected(self) -> Rows:
        statements, made = self.session.statements, list[str]()
        try:
            for name, relation in self.views.items():
                command = proto.Command()
                command.create_dataframe_view.input.CopyFrom(relation)
                command.create_dataframe_view.name = name
                self.session.inner.run(self.request, command)
                made.append(name)
            with _overwrite_by_partition(statements.spark, self.by_partition):
                return statements.run(self.text, self.jobs)
        except grpc.RpcError as error:
            self.inner_error = error
            raise StatementError(error.details() or str(error)) from error
        finally:
            self.session.drop(made)

    def _end(self, state: int, failure: Failure | None) -> None:
        with suppress(*SPARK_ERRORS):
            self.at_end()
        super()._end(state, failure)

    def answers(self, after: str) -> list[proto.ExecutePlanResponse]:
        """Return the answers behind one, which is named by its id, or all of them."""
        with self._lock:
            if self._kept is None:
                self._kept = list(self._answers())
            ids = [each.response_id for each in self._kept]
            return self._kept[ids.index(after) + 1 :] if after in ids else list(self._kept)

    def _answers(self) -> Iterator[proto.ExecutePlanResponse]:
        answer = self._answer()
        if self.answer == RELATION:
            answer.sql_command_result.relation.CopyFrom(local_relation(self.rows))
            yield answer
        elif self.answer == ROWS:
            answer.schema.CopyFrom(pyspark_types_to_proto_types(self.rows.schema))
            answer.arrow_batch.data = arrow_bytes(self.rows)
            answer.arrow_batch.row_count = len(self.rows.table)
            yield answer
        answer = self._answer()
        answer.result_complete.SetInParent()
        yield answer

    def _answer(self) -> proto.ExecutePlanResponse:
        return proto.ExecutePlanResponse(
            session_id=self.session.name,
            server_side_session_id=self.session.server_side,
            operation_id=self.request.operation_id,
            response_id=str(uuid.uuid4()),
        )

    def attach(self) -> None:
        """Note that a client waits for the answers."""
        if self._left is not None:
            self._left.cancel()

    def detach(self, forget: Callable[[Operation], None]) -> None:
        """Note that no client waits any more: one that may come back does so within a time, after which ``forget`` is called."""
        if not is_reattachable(self.request):
            return forget(self)
        self._left = threading.Timer(_DETACHED_S, forget, [self])
        self._left.daemon = True
        self._left.start()


@contextmanager
def _overwrite_by_partition(spark: SparkSession, is_wanted: bool | None) -> Iterator[None]:
    if is_wanted is None:
        yield
        return
    before = str(spark.conf.get(_OVERWRITE_MODE))
    spark.conf.set(_OVERWRITE_MODE, "dynamic" if is_wanted else "static")
    try:
        yield
    finally:
        spark.conf.set(_OVERWRITE_MODE, before)


@dataclass(eq=False, kw_only=True)
class Forwarded(Operation):
    """A plan that Spark's service runs."""

    session: ConnectSession
    request: proto.ExecutePlanRequest

    def __post_init__(self) -> None:
        super().__post_init__()
        self.state = RUNNING

    def cancel(self, why: str = _LEFT) -> None:
        if self.ended.is_set():
            return
        request = proto.InterruptRequest(
            session_id=self.session.name,
            user_context=self.request.user_context,
            interrupt_type=proto.InterruptRequest.INTERRUPT_TYPE_OPERATION_ID,
            operation_id=self.request.operation_id,
        )
        self.end(CANCELED, Failure(why, "57014"))
        with suppress(grpc.RpcError):  # it has just ended
            self.session.inner.unary("Interrupt", request.SerializeToString())

    def end(self, state: int, failure: Failure | None = None) -> None:
        """Note how the plan ended, once."""
        if not self.ended.is_set():
            self._end(state, failure)

    def follow(self, answers: Iterator[bytes], *, is_kept: bool) -> Iterator[bytes]:
        """Give the answers, and note their end; a good one of a plan that was only analysed is not kept."""
        try:
            yield from answers
            if not is_kept:
                self.ended.set()
            self.end(FINISHED)
        except grpc.RpcError as error:
            told = error.details() or str(error)
            cancelled = error.code() == grpc.StatusCode.CANCELLED or _CANCELLED in told
            self.end(CANCELED if cancelled else ERROR, as_failure(told, told))
            raise
        finally:
            self.end(CANCELED, Failure(_LEFT, "57014"))


class Clients:
    """The sessions of clients by user and name.

    Args:
        spark: A session of the Java that Spark's service runs in.
        adopt: Makes a session of the warehouse of one of Spark's.
    """

    def __init__(self, sessions: Sessions, inner: Inner, spark: SparkSession, adopt: Adopt) -> None:
        self._sessions, self._inner, self._spark, self._adopt = sessions, inner, spark, adopt
        self._known: dict[tuple[str, str], ConnectSession] = {}
        self._lock = threading.Lock()

    def get(self, user: str, name: str, observed: str = "") -> ConnectSession:
        """Return a session, which is opened if need be.

        Args:
            observed: The id of the session that the client has spoken to by that name; empty for none.
        """
        session = self.known(user, name)
        if session is None:
            if observed:
                raise ServerError(
                    "[INVALID_HANDLE.SESSION_CLOSED] the session was closed, or was idle for too long; connect again"
                )
            session = self._open(user, name)
        if observed not in ("", session.server_side):
            raise ServerError(
                "[INVALID_HANDLE.SESSION_CHANGED] the server was started again; connect again", "HY000"
            )
        session.touch()
        return session

    def _open(self, user: str, name: str) -> ConnectSession:
        with self._lock:
            session = self.known(user, name)
            if session is None:
                session = self._sessions.admit(lambda: self._opened(user, name), {})
                self._known = {key: each for key, each in self._known.items() if self._sessions.is_open(each)}
                self._known[user, name] = session
        return session

    def _opened(self, user: str, name: str) -> ConnectSession:
        spark, server_side = connect_session(self._spark, user, name)
        return ConnectSession(
            user,
            self._adopt(spark),
            self._sessions.history,
            name=name,
            server_side=server_side,
            inner=self._inner,
        )

    def known(self, user: str, name: str) -> ConnectSession | None:
        """Return a session that is open."""
        session = self._known.get((user, name))
        return session if session is not None and self._sessions.is_open(session) else None

    def require(self, user: str, name: str) -> ConnectSession:
        """Return a session that is open; ServerError where there is none."""
        session = self.known(user, name)
        if session is None:
            raise ServerError(
                "[INVALID_HANDLE.SESSION_NOT_FOUND] the session is not known: it was closed, or was idle for too long"
            )
        session.touch()
        return session

"""The calls of Spark Connect: to Spark's own service as they are, but for what concerns Hudi tables."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import Message
from pyspark.sql.connect import proto

from hudi_engine.errors import StatementError
from hudi_engine.server.connect import failures, guard
from hudi_engine.server.connect.clients import (
    END,
    RELATION,
    ROWS,
    Clients,
    ConnectSession,
    Forwarded,
    StatementRun,
)
from hudi_engine.server.connect.inner import Inner
from hudi_engine.server.connect.messages import (
    Reader,
    given_sql,
    is_reattachable,
    parts,
    query_and_views,
)
from hudi_engine.server.connect.rewriting import Rewriting, is_query
from hudi_engine.server.limits import ServerError
from hudi_engine.server.sessions import FINISHED, Operation, Sessions
from hudi_engine.spark.sql.failure import Failure

_LOOK_EVERY_S = 1.0
_ANY = proto.SQL(query="select 1")
_WRITTEN = "hudi_serve_rows"
# Requests about what ran: for them no session is opened.
_OF_KNOWN_SESSIONS = (
    proto.ReattachExecuteRequest,
    proto.ReleaseExecuteRequest,
    proto.FetchErrorDetailsRequest,
)


class Calls:
    """Answers calls, bytes in and bytes out.

    Args:
        user: Returns who calls; None where nobody logs in.
    """

    def __init__(
        self, sessions: Sessions, inner: Inner, clients: Clients, user: Callable[[Any], str | None]
    ) -> None:
        self._sessions, self._inner, self._clients, self._user = sessions, inner, clients, user
        self._reader = Reader()
        self._rewriting = Rewriting(sessions)

    def close(self) -> None:
        """End the thread that reads requests."""
        self._reader.close()

    def execute(self, data: bytes, context: Any) -> Iterator[bytes]:
        """Run a plan: by the engine where it changes what the engine keeps, by Spark otherwise."""
        session, request = self._request(proto.ExecutePlanRequest, data, context)
        request.operation_id = request.operation_id or str(uuid.uuid4())
        if request.operation_id in session.own:
            raise ServerError("[INVALID_HANDLE.OPERATION_ALREADY_EXISTS] the operation runs already")
        plan = request.plan
        if plan.HasField("command") and plan.command.HasField("sql_command"):
            return self._sql(session, request, context)
        if plan.HasField("command") and plan.command.HasField("create_dataframe_view"):
            return self._make_view(session, request, context)
        if plan.HasField("command"):
            view = f"{_WRITTEN}_{uuid.uuid4().hex}"
            write = self._sessions.on_spark(lambda: session.writes.as_statement(plan.command, view))
            if write is not None:
                run = partial(
                    self._run, session, request, write.text, answer=END, by_partition=write.by_partition
                )
                return self._attached(run(views={view: write.rows}), "", context)
        if plan.HasField("root") and plan.root.HasField("catalog"):
            text = self._sessions.on_spark(lambda: session.writes.catalog_statement(plan.root.catalog))
            if text is not None:
                self._sessions.check(session, text)
                return self._attached(self._run(session, request, text, views={}, answer=ROWS), "", context)
        if plan.HasField("root") and not is_query((query_and_views(plan.root)[0] or _ANY).query):
            return self._statement(session, request, plan.root, ROWS, context)
        return self._forward(session, request, context)

    def _sql(self, session: ConnectSession, request: Any, context: Any) -> Iterator[bytes]:
        relation = given_sql(request.plan.command.sql_command)
        query, _ = query_and_views(relation)
        if query is not None and not is_query(query.query):
            return self._statement(session, request, relation, RELATION, context)
        session.originals[request.operation_id] = original = proto.Relation()
        original.CopyFrom(relation)
        command = request.plan.command.sql_command
        if not command.HasField("input"):
            command.Clear()
            command.input.CopyFrom(relation)
        return self._forward(session, request, context)

    def _statement(
        self, session: ConnectSession, request: Any, relation: proto.Relation, answer: str, context: Any
    ) -> Iterator[bytes]:
        """Run a relation that is a statement, and no query."""
        query, views = query_and_views(relation)
        assert query is not None
        self._sessions.check(session, query.query)
        if query.args or query.pos_args or query.named_arguments or query.pos_arguments:
            raise StatementError(
                "parameters of a statement that is no query are refused: write the values into its text, or make them rows with "
                "createDataFrame and name those, spark.sql('insert into t select * from {rows}', rows=rows)"
            )
        return self._attached(
            self._run(session, request, query.query, views=views, answer=answer), "", context
        )

    def _run(
        self,
        session: ConnectSession,
        request: Any,
        text: str,
        *,
        views: Mapping[str, proto.Relation],
        answer: str,
        by_partition: bool | None = None,
    ) -> StatementRun:
        """Begin a statement of the engine's session."""
        made = self._rewriting.rewrite(session, *views.values(), text=text)
        run = StatementRun(
            session=session,
            text=text,
            request=request,
            at_end=lambda: session.drop(made),
            views=views,
            answer=answer,
            by_partition=by_partition,
        )
        session.own[request.operation_id] = run
        return self._sessions.begin(run)

    def _attached(self, run: StatementRun, after: str, context: Any) -> Iterator[bytes]:
        """Wait for a statement's end, and give its answers."""
        run.attach()
        try:
            while not run.ended.wait(_LOOK_EVERY_S):
                if not context.is_active():
                    return
            if run.inner_error is not None:
                raise run.inner_error
            if run.state != FINISHED:
                raise failures.CallFailedError(run.failure or Failure("the statement has no result"))
            yield from (each.SerializeToString() for each in run.answers(after))
        finally:
            run.detach(self._forget)

    def _forget(self, run: Operation) -> None:
        """Cancel a statement if it runs, and forget its answers."""
        assert isinstance(run, StatementRun)
        run.attach()
        run.session.own.pop(run.request.operation_id, None)
        self._sessions.close_operation(run)

    def _forward(self, session: ConnectSession, request: Any, context: Any) -> Iterator[bytes]:
        """Have Spark run a plan, whose queries read what Hudi's words in them mean."""
        original = session.originals.get(request.operation_id)
        text = "; ".join(each.query for each in parts(proto.SQL, request)) or _described(request)
        views = self._rewriting.rewrite(session, request)
        try:
            operation = self._sessions.add(Forwarded(session=session, text=text, request=request))
            answers = self._answers(session, "ExecutePlan", request, context)
            try:
                # a query of spark.sql is analysed only, and rows that came with the plan are those of a statement that ran
                is_kept = original is None and not request.plan.root.HasField("local_relation")
                yield from operation.follow(answers, is_kept=is_kept)
            finally:
                self._sessions.close_operation(operation)
        finally:
            self._rewriting.drop(session, views)
            if not is_reattachable(request):
                session.originals.pop(request.operation_id, None)

    def _answers(self, session: ConnectSession, method: str, request: Any, context: Any) -> Iterator[bytes]:
        call = self._inner.stream(method, request.SerializeToString())
        context.add_callback(call.cancel)
        original = session.originals.get(request.operation_id)
        for answer in call:
            yield answer if original is None else _with_original(answer, original)

    def _make_view(self, session: ConnectSession, request: Any, context: Any) -> Iterator[bytes]:
        """Have Spark make a temporary view, which is made again when it is named later."""
        command = proto.CreateDataFrameViewCommand()
        command.CopyFrom(request.plan.command.create_dataframe_view)
        is_to_note = self._sessions.on_spark(lambda: session.frames.is_to_note(command))
        yield from self._forward(session, request, context)
        if is_to_note:
            self._sessions.on_spark(lambda: session.frames.note(command))

    def analyze(self, data: bytes, context: Any) -> bytes:
        """Answer a question about a plan."""
        session, request = self._request(proto.AnalyzePlanRequest, data, context)
        views = self._rewriting.rewrite(session, request)
        try:
            return self._inner.unary("AnalyzePlan", request.SerializeToString())
        finally:
            self._rewriting.drop(session, views)

    def reattach(self, data: bytes, context: Any) -> Iterator[bytes]:
        """Go on with the answers of a plan."""
        session, request = self._request(proto.ReattachExecuteRequest, data, context)
        run = session.own.get(request.operation_id)
        if run is not None:
            return self._attached(run, request.last_response_id, context)
        return self._answers(session, "ReattachExecute", request, context)

    def release(self, data: bytes, context: Any) -> bytes:
        """Forget answers that the client has."""
        session, request = self._request(proto.ReleaseExecuteRequest, data, context)
        run = session.own.get(request.operation_id)
        if request.HasField("release_all"):
            session.originals.pop(request.operation_id, None)
        if run is None:
            return self._inner.unary("ReleaseExecute", request.SerializeToString())
        if request.HasField("release_all"):
            self._forget(run)
        answer = proto.ReleaseExecuteResponse(
            session_id=session.name,
            server_side_session_id=session.server_side,
            operation_id=request.operation_id,
        )
        return bytes(answer.SerializeToString())

    def interrupt(self, data: bytes, context: Any) -> bytes:
        """Cancel what runs: all, what has a tag, or one operation."""
        session, request = self._request(proto.InterruptRequest, data, context)
        found = [
            run
            for key, run in list(session.own.items())
            if not run.ended.is_set()
            and (
                request.interrupt_type == proto.InterruptRequest.INTERRUPT_TYPE_ALL
                or key == request.operation_id
                or request.operation_tag in run.request.tags
            )
        ]
        for run in found:
            run.cancel()
        answer = proto.InterruptResponse.FromString(
            self._inner.unary("Interrupt", request.SerializeToString())
        )
        answer.interrupted_ids.extend(run.request.operation_id for run in found)
        return bytes(answer.SerializeToString())

    def config(self, data: bytes, context: Any) -> bytes:
        """Read and change settings of the session."""
        _, request = self._request(proto.ConfigRequest, data, context)
        if not self._sessions.limits.allow_code:
            guard.check_settings(request)
        answer = proto.ConfigResponse.FromString(self._inner.unary("Config", request.SerializeToString()))
        guard.without_secrets(answer)
        return bytes(answer.SerializeToString())

    def add_artifacts(self, parts: Iterator[bytes], context: Any) -> bytes:
        """Take the rows of DataFrames, which come in parts; with ``--allow-code`` files too."""
        failed: list[Exception] = []

        def checked() -> Iterator[bytes]:
            try:
                for data in parts:
                    _, request = self._request(proto.AddArtifactsRequest, data, context)
                    if not self._sessions.limits.allow_code:
                        guard.check_artifacts(request)
                    yield request.SerializeToString()
            except Exception as error:
                failed.append(error)

        try:
            answer = self._inner.from_stream("AddArtifacts", checked())
        except grpc.RpcError:
            if not failed:
                raise
        if failed:
            raise failed[0]
        return answer

    def release_session(self, data: bytes, context: Any) -> bytes:
        """Close the session."""
        request = self._read(proto.ReleaseSessionRequest, data, context)
        session = self._clients.known(request.user_context.user_id, request.session_id)
        answer = proto.ReleaseSessionResponse(session_id=request.session_id)
        if session is not None:
            session.keeps_name = request.allow_reconnect
            self._sessions.close(session)
            answer.server_side_session_id = session.server_side
        return bytes(answer.SerializeToString())

    def clone(self, data: bytes, context: Any) -> bytes:
        """Open a session that begins with the settings and views of another one."""
        session, request = self._request(proto.CloneSessionRequest, data, context)
        request.new_session_id = request.new_session_id or str(uuid.uuid4())
        answer = self._inner.unary("CloneSession", request.SerializeToString())
        self._clients.get(session.user, request.new_session_id)
        return answer

    def pass_on(self, method: str, kind: type[Message], data: bytes, context: Any) -> bytes:
        """Have Spark's service answer."""
        _, request = self._request(kind, data, context)
        return self._inner.unary(method, request.SerializeToString())

    def _read(self, kind: type[Any], data: bytes, context: Any) -> Any:
        """Return a request; a user who logs in is nobody else, whatever the request says."""
        user = self._user(context)
        request = self._reader.read(kind, data)
        if user is not None:
            request.user_context.user_id = request.user_context.user_name = user
        return request

    def _request(self, kind: type[Any], data: bytes, context: Any) -> tuple[ConnectSession, Any]:
        """Return a request and its session; ServerError and StatementError for what is not accepted."""
        request = self._read(kind, data, context)
        user = request.user_context.user_id
        if kind in _OF_KNOWN_SESSIONS:
            session = self._clients.require(user, request.session_id)
        else:
            observed = getattr(request, "client_observed_server_side_session_id", "")
            session = self._clients.get(user, request.session_id, observed)
        if not self._sessions.limits.allow_code:
            guard.check_plan(request, self._sessions.formats(session))
        return session, request


def _described(request: proto.ExecutePlanRequest) -> str:
    """Return what the page shows of a DataFrame that has no query in it."""
    names = [each.unparsed_identifier for each in parts(proto.Read.NamedTable, request)]
    plan = request.plan
    kind = (
        plan.root.WhichOneof("rel_type") if plan.HasField("root") else plan.command.WhichOneof("command_type")
    )
    return f"DataFrame: {kind}" + (f" of {', '.join(names)}" if names else "")


def _with_original(answer: bytes, original: proto.Relation) -> bytes:
    """Return an answer whose relation is what the client sent: each action of it is rewritten anew."""
    message = proto.ExecutePlanResponse.FromString(answer)
    if not message.HasField("sql_command_result"):
        return answer
    message.sql_command_result.relation.CopyFrom(original)
    return bytes(message.SerializeToString())

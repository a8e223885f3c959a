"""The front of Spark Connect: bytes in and out of Spark's own service, but for what concerns Hudi tables."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import grpc
from google.protobuf.message import Message
from pyspark.sql.connect import proto

from hudi_engine.errors import ConfigError, StatementError
from hudi_engine.server.connect import failures, guard
from hudi_engine.server.connect.clients import Adopt, Clients, ConnectSession, Forwarded, StatementRun
from hudi_engine.server.connect.inner import SERVICE, UNBOUNDED, Inner
from hudi_engine.server.connect.messages import (
    MAX_BYTES,
    Reader,
    given_sql,
    local_relation,
    messages,
    query_and_views,
    sql_texts,
)
from hudi_engine.server.limits import ServerError
from hudi_engine.server.passwords import LogIn
from hudi_engine.server.sessions import FINISHED, Operation, Sessions
from hudi_engine.spark.sql.failure import Failure
from hudi_engine.spark.sql.session import NO_ROWS, StatementSession
from hudi_engine.spark.sql.statements import QUERIES, first_keyword, outer_words, split_statements

_LOOK_EVERY_S = 1.0
_THREADS_PER_SESSION = 4
# Requests about what ran: for them no session is opened.
_OF_KNOWN_SESSIONS = (
    proto.ReattachExecuteRequest,
    proto.ReleaseExecuteRequest,
    proto.FetchErrorDetailsRequest,
)
_CHANGING = frozenset(("insert", "merge", "update", "delete"))
_ENDED_WITHIN_S = 5.0
_WRITTEN = "hudi_serve_rows"
_LOGIN = "this server asks for user and password: connect with sc://HOST:PORT/;token=USER:PASSWORD, with use_ssl=true with --tls"


class Front:
    """A server of Spark Connect.

    Args:
        adopt: Makes a session of the warehouse of one of Spark's.
        log_in: Checks user and password; None lets everyone in.
        tls: Paths of certificate and private key in PEM.
    """

    def __init__(
        self,
        sessions: Sessions,
        spark: StatementSession,
        adopt: Adopt,
        address: tuple[str, int],
        log_in: LogIn | None,
        tls: tuple[str, str] | None,
    ) -> None:
        self._sessions, self._log_in = sessions, log_in
        self._reader = Reader()
        self._inner = Inner(spark.spark)
        self._clients = Clients(sessions, self._inner, spark.spark, adopt)
        threads = ThreadPoolExecutor(_THREADS_PER_SESSION * sessions.limits.sessions, "connect")
        options = (
            UNBOUNDED[0],
            ("grpc.max_receive_message_length", MAX_BYTES),
            ("grpc.so_reuseport", 0),
        )
        self._server = grpc.server(threads, handlers=(_Handlers(self),), options=options)
        host, port = address
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            self.port = (
                self._server.add_insecure_port(place)
                if tls is None
                else self._server.add_secure_port(place, _credentials(tls))
            )
        except RuntimeError as error:
            raise ConfigError(
                f"cannot listen on {place} for Spark Connect: {error}; choose another --connect-port"
            ) from error

    def start(self) -> None:
        """Take calls from now on."""
        self._server.start()

    def stop(self, grace_s: float, stop_sessions: Callable[[], None]) -> None:
        """Take no calls any more, but for those whose statements end within the grace time."""
        ended = self._server.stop(grace_s + _ENDED_WITHIN_S)
        stop_sessions()
        self._server.stop(None)
        ended.wait(_ENDED_WITHIN_S)
        self._inner.close()
        self._reader.close()

    # --- calls --------------------------------------------------------------------------------------------------

    def execute(self, data: bytes, context: Any) -> Iterator[bytes]:
        """Run a plan: by the engine where it changes what the engine keeps, by Spark otherwise."""
        session, request = self._request(proto.ExecutePlanRequest, data, context)
        request.operation_id = request.operation_id or str(uuid.uuid4())
        if request.operation_id in session.own:
            raise ServerError("[INVALID_HANDLE.OPERATION_ALREADY_EXISTS] the operation runs already")
        plan = request.plan
        if plan.HasField("command") and plan.command.HasField("sql_command"):
            return self._sql(session, request, context)
        if plan.HasField("command"):
            view = f"{_WRITTEN}_{uuid.uuid4().hex}"
            write = self._sessions.on_spark(lambda: session.writes.as_statement(plan.command, view))
            if write is not None:
                run = partial(
                    self._run, session, request, write.text, has_rows=False, by_partition=write.by_partition
                )
                return self._attached(run(views={view: write.rows}), "", context)
        if plan.HasField("root") and plan.root.HasField("catalog"):
            text = self._sessions.on_spark(lambda: session.writes.catalog_statement(plan.root.catalog))
            if text is not None:
                return self._of_catalog(session, request, text, context)
        return self._forward(session, request, context)

    def _sql(self, session: ConnectSession, request: Any, context: Any) -> Iterator[bytes]:
        relation = given_sql(request.plan.command.sql_command)
        query, views = query_and_views(relation)
        if query is None:
            return self._forward(session, request, context)
        if _is_query(query.query):
            session.originals[request.operation_id] = original = proto.Relation()
            original.CopyFrom(relation)
            command = request.plan.command.sql_command
            if not command.HasField("input"):
                command.Clear()
                command.input.CopyFrom(relation)
            return self._forward(session, request, context)
        self._sessions.check(session, query.query)
        if query.args or query.pos_args or query.named_arguments or query.pos_arguments:
            raise StatementError(
                "parameters of a statement that is no query are refused: write the values into its text, or make them rows with "
                "createDataFrame and name those, spark.sql('insert into t select * from {rows}', rows=rows)"
            )
        return self._attached(self._run(session, request, query.query, views=views), "", context)

    def _run(
        self,
        session: ConnectSession,
        request: Any,
        text: str,
        *,
        views: Mapping[str, proto.Relation],
        has_rows: bool = True,
        by_partition: bool = False,
    ) -> StatementRun:
        """Begin a statement of the engine's session."""
        made = self._rewrite(session, *views.values())
        run = StatementRun(
            session=session,
            text=text,
            request=request,
            at_end=lambda: _drop(session, made),
            views=views,
            has_rows=has_rows,
            by_partition=by_partition,
        )
        session.own[request.operation_id] = run
        return self._sessions.begin(run)

    def _of_catalog(self, session: ConnectSession, request: Any, text: str, context: Any) -> Iterator[bytes]:
        """Run a call of the catalog as a statement, and answer no rows."""
        self._sessions.check(session, text)
        own = proto.ExecutePlanRequest()
        own.CopyFrom(request)
        own.operation_id = str(uuid.uuid4())
        run = self._run(session, own, text, views={}, has_rows=False)
        for _ in self._attached(run, "", context):
            pass
        self._forget(run)
        request.plan.root.CopyFrom(local_relation(NO_ROWS))
        yield from self._forward(session, request, context)

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
        text = "; ".join(each.query for each in sql_texts(request)) or _described(request)
        views = self._rewrite(session, request)
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
            _drop_later(self._sessions, session, views)

    def _answers(self, session: ConnectSession, method: str, request: Any, context: Any) -> Iterator[bytes]:
        call = self._inner.stream(method, request.SerializeToString())
        context.add_callback(call.cancel)
        original = session.originals.get(request.operation_id)
        for answer in call:
            yield answer if original is None else _with_original(answer, original)

    def analyze(self, data: bytes, context: Any) -> bytes:
        """Answer a question about a plan."""
        session, request = self._request(proto.AnalyzePlanRequest, data, context)
        views = self._rewrite(session, request)
        try:
            return self._inner.unary("AnalyzePlan", request.SerializeToString())
        finally:
            _drop_later(self._sessions, session, views)

    def _rewrite(self, session: ConnectSession, *plans: Message) -> list[str]:
        """Have plans read the newest commits, and what Hudi's words in their queries mean; returns the views that this takes."""
        reads = [each for plan in plans for each in messages(plan) if isinstance(each, proto.Relation)]
        reads = [each for each in reads if each.HasField("read") or each.HasField("catalog")]
        if reads:
            self._sessions.on_spark(lambda: session.prepare(reads))
        queries = [each for plan in plans for each in sql_texts(plan)]
        for each in queries:
            self._sessions.check(session, each.query)
            if not _is_query(each.query):
                raise StatementError(
                    f"a statement that is no query is refused inside of a DataFrame: {each.query[:80]}; run it with spark.sql"
                )
        views: list[str] = []

        def own_view(stem: str) -> str:
            views.append(f"{stem}_{uuid.uuid4().hex}")
            return views[-1]

        def rewrite() -> None:
            session.statements.look_again()
            for each in queries:
                each.query = session.statements.rewritten(each.query, own_view)

        try:
            self._sessions.on_spark(rewrite)
        except Exception:
            _drop_later(self._sessions, session, views)
            raise
        return views

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
        return self._inner.unary("Config", request.SerializeToString())

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
        request = self._reader.read(proto.ReleaseSessionRequest, data)
        session = self._clients.known(self._user(request, context), request.session_id)
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

    # --- who asks -----------------------------------------------------------------------------------------------

    def _request(self, kind: type[Any], data: bytes, context: Any) -> tuple[ConnectSession, Any]:
        """Return a request and its session; ServerError and StatementError for what is not accepted."""
        request = self._reader.read(kind, data)
        user = self._user(request, context)
        if kind in _OF_KNOWN_SESSIONS:
            session = self._clients.require(user, request.session_id)
        else:
            observed = getattr(request, "client_observed_server_side_session_id", "")
            session = self._clients.get(user, request.session_id, observed)
        if not self._sessions.limits.allow_code:
            guard.check_plan(request, self._sessions.formats(session))
        return session, request

    def _user(self, request: Any, context: Any) -> str:
        """Return who calls; a user who logs in is nobody else, whatever the request says."""
        if self._log_in is not None:
            given = dict(context.invocation_metadata()).get("authorization", "")
            token = given.partition(" ")[2]
            pairs = [each.partition(":") for each in dict.fromkeys((token, unquote(token)))]
            user = next((user for user, _, password in pairs if user and self._log_in(user, password)), None)
            if user is None:
                raise failures.NobodyError(_LOGIN)
            request.user_context.user_id = request.user_context.user_name = user
        return str(request.user_context.user_id)


def _is_query(text: str) -> bool:
    """Whether Spark may run a text by itself."""
    statements = split_statements(text)
    if len(statements) != 1 or first_keyword(text) not in QUERIES:
        return False
    return not any(word in _CHANGING for _, word in outer_words(text))


def _described(request: proto.ExecutePlanRequest) -> str:
    """Return what the page shows of a DataFrame that has no query in it."""
    names = [
        each.unparsed_identifier for each in messages(request) if isinstance(each, proto.Read.NamedTable)
    ]
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


def _drop(session: ConnectSession, views: list[str]) -> None:
    for each in views:
        session.statements.spark.catalog.dropTempView(each)


def _drop_later(sessions: Sessions, session: ConnectSession, views: list[str]) -> None:
    if views and sessions.is_open(session):
        sessions.on_spark(lambda: _drop(session, views))


def _credentials(tls: tuple[str, str]) -> Any:
    certificate, key = (Path(each).read_bytes() for each in tls)
    return grpc.ssl_server_credentials(((key, certificate),))


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Finds who answers a call, and has errors go to clients as they read them."""

    def __init__(self, front: Front) -> None:
        one, many, sent = (
            grpc.unary_unary_rpc_method_handler,
            grpc.unary_stream_rpc_method_handler,
            grpc.stream_unary_rpc_method_handler,
        )
        self._found = {
            "ExecutePlan": many(failures.told_in_stream(front.execute)),
            "ReattachExecute": many(failures.told_in_stream(front.reattach)),
            "AnalyzePlan": one(failures.told(front.analyze)),
            "Config": one(failures.told(front.config)),
            "AddArtifacts": sent(failures.told(front.add_artifacts)),
            "Interrupt": one(failures.told(front.interrupt)),
            "ReleaseExecute": one(failures.told(front.release)),
            "ReleaseSession": one(failures.told(front.release_session)),
            "CloneSession": one(failures.told(front.clone)),
        }
        known = proto.base_pb2.DESCRIPTOR.services_by_name["SparkConnectService"].methods_by_name
        for method in ("ArtifactStatus", "FetchErrorDetails", "GetStatus"):
            if method in known:
                kind = known[method].input_type._concrete_class
                self._found[method] = one(failures.told(partial(front.pass_on, method, kind)))

    def service(self, handler_call_details: Any) -> Any:
        """Return who answers a method, None for one that is not known."""
        method = str(handler_call_details.method)
        return self._found.get(method.removeprefix(SERVICE)) if method.startswith(SERVICE) else None

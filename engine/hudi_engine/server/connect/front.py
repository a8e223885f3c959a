"""The front of Spark Connect: bytes in and out of Spark's own service, but for what concerns Hudi tables."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import grpc
from pyspark.sql.connect import proto

from hudi_engine.errors import ConfigError
from hudi_engine.server.connect import failures
from hudi_engine.server.connect.calls import Calls
from hudi_engine.server.connect.clients import Adopt, Clients
from hudi_engine.server.connect.inner import SERVICE, UNBOUNDED, Inner
from hudi_engine.server.connect.messages import MAX_BYTES
from hudi_engine.server.passwords import LogIn
from hudi_engine.server.sessions import Sessions
from hudi_engine.spark.sql.session import StatementSession

_THREADS_PER_SESSION = 4
_ANSWERED_WITHIN_S, _ENDED_WITHIN_S = 2.0, 5.0
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
        self._log_in = log_in
        self._inner = Inner(spark.spark)
        self._calls = Calls(
            sessions, self._inner, Clients(sessions, self._inner, spark.spark, adopt), self._user
        )
        threads = ThreadPoolExecutor(_THREADS_PER_SESSION * sessions.limits.sessions, "connect")
        options = (UNBOUNDED[0], ("grpc.max_receive_message_length", MAX_BYTES), ("grpc.so_reuseport", 0))
        self._server = grpc.server(threads, handlers=(_Handlers(self._calls),), options=options)
        self.port = self._listen(*address, tls)

    def _listen(self, host: str, port: int, tls: tuple[str, str] | None) -> int:
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if tls is None:
                return int(self._server.add_insecure_port(place))
            return int(self._server.add_secure_port(place, _credentials(tls)))
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
        if not ended.wait(_ANSWERED_WITHIN_S):
            self._server.stop(None)
            ended.wait(_ENDED_WITHIN_S)
        self._inner.close()
        self._calls.close()

    def _user(self, context: Any) -> str | None:
        """Return who calls, None where nobody logs in; NobodyError for who is not let in."""
        if self._log_in is None:
            return None
        given = str(dict(context.invocation_metadata()).get("authorization", ""))
        token = given.partition(" ")[2]
        # a header has no letters beyond ASCII: such a password comes quoted
        for user, _, password in (each.partition(":") for each in dict.fromkeys((token, unquote(token)))):
            if user and self._log_in(user, password):
                return user
        raise failures.NobodyError(_LOGIN)


def _credentials(tls: tuple[str, str]) -> Any:
    certificate, key = (Path(each).read_bytes() for each in tls)
    return grpc.ssl_server_credentials(((key, certificate),))


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Finds who answers a call, and has errors go to clients as they read them."""

    def __init__(self, calls: Calls) -> None:
        one, many, sent = (
            grpc.unary_unary_rpc_method_handler,
            grpc.unary_stream_rpc_method_handler,
            grpc.stream_unary_rpc_method_handler,
        )
        self._found = {
            "ExecutePlan": many(failures.told_in_stream(calls.execute)),
            "ReattachExecute": many(failures.told_in_stream(calls.reattach)),
            "AnalyzePlan": one(failures.told(calls.analyze)),
            "Config": one(failures.told(calls.config)),
            "AddArtifacts": sent(failures.told(calls.add_artifacts)),
            "Interrupt": one(failures.told(calls.interrupt)),
            "ReleaseExecute": one(failures.told(calls.release)),
            "ReleaseSession": one(failures.told(calls.release_session)),
            "CloneSession": one(failures.told(calls.clone)),
        }
        known = proto.base_pb2.DESCRIPTOR.services_by_name["SparkConnectService"].methods_by_name
        for method in ("ArtifactStatus", "FetchErrorDetails", "GetStatus"):
            if method in known:
                kind = known[method].input_type._concrete_class
                self._found[method] = one(failures.told(partial(calls.pass_on, method, kind)))

    def service(self, handler_call_details: Any) -> Any:
        """Return who answers a method, None for one that is not known."""
        method = str(handler_call_details.method)
        return self._found.get(method.removeprefix(SERVICE)) if method.startswith(SERVICE) else None

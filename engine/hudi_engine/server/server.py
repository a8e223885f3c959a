"""A server of Hudi tables: started, and stopped in order."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pyspark
from pyspark.sql import SparkSession

from hudi_engine.errors import ConfigError
from hudi_engine.format.telemetry.reporters import listening
from hudi_engine.server.limits import ServerLimits, check_limits
from hudi_engine.server.passwords import LogIn
from hudi_engine.server.sessions import Sessions
from hudi_engine.server.transports import Listener
from hudi_engine.server.web import is_loopback
from hudi_engine.spark.sql.session import StatementSession

if TYPE_CHECKING:
    from hudi_engine.server.connect.front import Front

LOOPBACK = "127.0.0.1"
_CONNECT_PACKAGES = ("grpc", "grpc_status", "google.rpc", "zstandard")


@dataclass(frozen=True)
class ServerOptions:
    """Where and for whom a server listens.

    Args:
        port: 0 for any that is free.
        log_in: Checks user and password; None lets everyone in, on the loopback interface only.
        tls: Paths of certificate and private key in PEM; None for connections in clear.
        grace_s: Seconds that running statements have to end when the server stops.
        hold_drops_s: Seconds that a DROP TABLE waits for the CREATE TABLE that follows, for who opens the sessions.
        connect_port: Where Spark Connect is spoken too, 0 for any that is free; None for nowhere.
    """

    host: str = LOOPBACK
    port: int = 10000
    log_in: LogIn | None = None
    tls: tuple[str, str] | None = None
    grace_s: float = 30.0
    hold_drops_s: float = 30.0
    connect_port: int | None = None
    limits: ServerLimits = field(default_factory=ServerLimits)


class HudiServer:
    """A server of HiveServer2's protocol and, where a port is given for it, of Spark Connect.

    Args:
        open_statements: Opens a session on Spark for each client.
        adopt: Makes such a session of one of Spark's, for clients of Spark Connect.
    """

    def __init__(
        self,
        open_statements: Callable[[], StatementSession],
        options: ServerOptions,
        adopt: Callable[[SparkSession], StatementSession] | None = None,
    ) -> None:
        check_options(options)
        self._options = options
        self.sessions = Sessions(open_statements, options.limits)
        address = options.host, options.port
        try:
            self._listener = Listener(address, self.sessions, options.log_in, _tls_context(options.tls))
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {options.host}:{options.port}: {error.strerror or error}; choose another --port or --host"
            ) from error
        self.port = self._listener.port
        self._connect: Front | None = None
        if options.connect_port is not None and adopt is not None:
            self._connect = self._connect_front(open_statements(), adopt, options.connect_port)
        self._listening = ExitStack()
        self._thread = threading.Thread(target=self._listener.serve, name="listener", daemon=True)

    def _connect_front(
        self, spark: StatementSession, adopt: Callable[[SparkSession], StatementSession], port: int
    ) -> Front:
        # gRPC and the messages of PySpark take half a second to import, and others need not have them
        from hudi_engine.server.connect.front import Front

        options = self._options
        try:
            return Front(self.sessions, spark, adopt, (options.host, port), options.log_in, options.tls)
        except ConfigError:
            self._listener.close()
            raise

    @property
    def connect_port(self) -> int | None:
        """Where Spark Connect is spoken; None for nowhere."""
        return None if self._connect is None else self._connect.port

    def start(self) -> None:
        """Take connections from now on."""
        self._listening.enter_context(listening(self.sessions.history.committed))
        self._thread.start()
        if self._connect is not None:
            self._connect.start()

    def stop(self) -> None:
        """Take no connections any more, let running statements end within the grace time, take back what runs then."""
        self._listener.close()
        stop_sessions = partial(self.sessions.stop, self._options.grace_s)
        if self._connect is None:
            stop_sessions()
        else:
            self._connect.stop(self._options.grace_s, stop_sessions)
        self._listener.hang_up()
        self._listening.close()


def check_options(options: ServerOptions) -> None:
    """Raise ConfigError for options that would let strangers in, or that make no sense."""
    check_limits(options.limits)
    for name, port in (("port", options.port), ("connect-port", options.connect_port or 0)):
        if not 0 <= port <= 65535:
            raise ConfigError(f"{name} is {port}; legal values: 0 (any that is free) to 65535")
    if options.connect_port is not None:
        check_connect()
    for name, seconds in (("grace", options.grace_s), ("hold-drops", options.hold_drops_s)):
        if not 0 <= seconds <= threading.TIMEOUT_MAX:
            raise ConfigError(
                f"{name} is {seconds:g}; legal values: seconds from 0 to {threading.TIMEOUT_MAX:.0f}"
            )
    if is_loopback(options.host) or options.log_in is not None:
        return
    raise ConfigError(
        f"host {options.host!r} can be reached from other machines: ask for user and password (--auth FILE), and encrypt them "
        "(--tls CERT KEY); without --auth the server listens on 127.0.0.1 only"
    )


def check_connect() -> None:
    """Raise ConfigError where Spark Connect cannot be spoken: it comes with PySpark 4, and with packages of its own."""
    if pyspark.__version__.startswith("3."):
        raise ConfigError(
            f"--connect-port needs PySpark 4, as PySpark {pyspark.__version__} brings no service of Spark Connect: leave it out, "
            "or pip install 'pyspark>=4'"
        )
    missing = [each for each in _CONNECT_PACKAGES if not _is_there(each)]
    if missing:
        raise ConfigError(
            f"--connect-port needs the package of {missing[0]}: pip install 'dbt-hudi[connect]'"
        )


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _tls_context(files: tuple[str, str] | None) -> ssl.SSLContext | None:
    if files is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(*files)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"certificate {files[0]!r} and key {files[1]!r} cannot be used: {error}") from error
    return context

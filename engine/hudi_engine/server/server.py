"""A server of Hudi tables: started, and stopped in order."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from hudi_engine.errors import ConfigError
from hudi_engine.format.telemetry.reporters import listening
from hudi_engine.server.passwords import LogIn
from hudi_engine.server.sessions import ServerLimits, Sessions, check_limits
from hudi_engine.server.transports import Listener
from hudi_engine.server.web import is_loopback
from hudi_engine.spark.sql.session import StatementSession

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class ServerOptions:
    """Where and for whom a server listens.

    Args:
        port: 0 for any that is free.
        log_in: Checks user and password; None lets everyone in, on the loopback interface only.
        tls: Paths of certificate and private key in PEM; None for connections in clear.
        grace_s: Seconds that running statements have to end when the server stops.
        hold_drops_s: Seconds that a DROP TABLE waits for the CREATE TABLE that follows, for who opens the sessions.
    """

    host: str = LOOPBACK
    port: int = 10000
    log_in: LogIn | None = None
    tls: tuple[str, str] | None = None
    grace_s: float = 30.0
    hold_drops_s: float = 30.0
    limits: ServerLimits = field(default_factory=ServerLimits)


class HudiServer:
    """A server of HiveServer2's protocol.

    Args:
        open_statements: Opens a session on Spark for each client.
    """

    def __init__(self, open_statements: Callable[[], StatementSession], options: ServerOptions) -> None:
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
        self._listening = ExitStack()
        self._thread = threading.Thread(target=self._listener.serve, name="listener", daemon=True)

    def start(self) -> None:
        """Take connections from now on."""
        self._listening.enter_context(listening(self.sessions.history.committed))
        self._thread.start()

    def stop(self) -> None:
        """Take no connections any more, let running statements end within the grace time, take back what runs then."""
        self._listener.close()
        self.sessions.stop(self._options.grace_s)
        self._listener.hang_up()
        self._listening.close()


def check_options(options: ServerOptions) -> None:
    """Raise ConfigError for options that would let strangers in, or that make no sense."""
    check_limits(options.limits)
    if not 0 <= options.port <= 65535:
        raise ConfigError(f"port is {options.port}; legal values: 0 (any that is free) to 65535")
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

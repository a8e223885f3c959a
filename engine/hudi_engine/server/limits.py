"""What clients may use of a server, and the error of a call that it cannot answer."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_engine.errors import ConfigError, StatementError


class ServerError(StatementError):
    """A call that the server cannot answer.

    Args:
        sqlstate: Five characters.
        bad_handle: Whether the session or operation of the call is not known.
    """

    def __init__(self, message: str, sqlstate: str = "HY000", *, bad_handle: bool = False) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.bad_handle = bad_handle


@dataclass(frozen=True)
class ServerLimits:
    """What clients may use.

    Args:
        sessions: Most sessions at a time; connections may be twice as many.
        statements: Most statements that run at a time; further ones wait.
        statement_bytes: Longest statement.
        window_bytes: Most bytes of one answer, but for a row that is longer; PyHive takes 16384000.
        idle_s: Seconds without a call after which a session is closed; one with a running statement is kept.
        poll_s: Seconds that a question for the state of a running statement waits for its end.
        allow_code: Accept ADD JAR, sources such as jdbc, and whatever else runs code of the client.
    """

    sessions: int = 100
    statements: int = 16
    statement_bytes: int = 8 * 1024 * 1024
    window_bytes: int = 8 * 1024 * 1024
    idle_s: float = 3600.0
    poll_s: float = 5.0
    allow_code: bool = False


def check_limits(limits: ServerLimits) -> None:
    """Raise ConfigError for limits that allow nothing."""
    for name, value in vars(limits).items():
        if name not in ("allow_code", "poll_s") and value <= 0:
            raise ConfigError(f"{name} is {value}; give a number above 0")

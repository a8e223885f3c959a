"""The adapter's log, which the engine's warnings and those of the connection to Java, go to as well."""

from __future__ import annotations

import logging

from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.events.types import AdapterEventWarning
from dbt_common.events.functions import warn_or_error
from dbt_common.invocation import get_invocation_id
from hudi_engine.spark.jvm.errors import is_of_connection


class _Sentences(AdapterLogger):
    """Puts values into their sentence itself: as values of an event they come out as protobuf prints them, numbers as floats."""

    def debug(self, msg: str, *args: object) -> None:
        super().debug("{}", _sentence(msg, args))

    def info(self, msg: str, *args: object) -> None:
        super().info("{}", _sentence(msg, args))

    def warning(self, msg: str, *args: object) -> None:
        super().warning("{}", _sentence(msg, args))

    def error(self, msg: str, *args: object) -> None:
        super().error("{}", _sentence(msg, args))


def _sentence(msg: str, args: tuple[object, ...]) -> str:
    return msg.format(*args) if args else msg


logger = _Sentences("Hudi")


_logged: set[tuple[str, str]] = set()


def is_first(text: str) -> bool:
    """Whether this is the first call with a text in this dbt command, for warnings that are logged once."""
    key = (get_invocation_id(), text)
    if key in _logged:
        return False
    _logged.add(key)
    return True


def warn(text: str) -> None:
    """Log a warning that dbt's ``--warn-error`` makes an error."""
    warn_or_error(AdapterEventWarning(name="Hudi", base_msg=text, args=[]))


class _ToDbtLog(logging.Handler):
    """Hands warnings of the engine to dbt's log, and what it notes of a run to its debug log."""

    def emit(self, record: logging.LogRecord) -> None:
        log = logger.warning if record.levelno >= logging.WARNING else logger.debug
        log("{}", record.getMessage())


class _NotOnScreen(logging.Filter):
    """Takes what the connection to Java gives to everybody's log, a stack whenever it breaks, to dbt's debug log.

    The error that follows has the adapter's own text.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if not is_of_connection(record):
            return True
        logger.debug("connection to Java: {}", logging.Formatter().format(record))
        return False


_root_log = logging.getLogger()
if not any(isinstance(one, _NotOnScreen) for one in _root_log.filters):
    _root_log.addFilter(_NotOnScreen())

_engine_log = logging.getLogger("hudi_engine")
if not any(isinstance(handler, _ToDbtLog) for handler in _engine_log.handlers):
    _engine_log.addHandler(_ToDbtLog(level=logging.INFO))
    _engine_log.setLevel(logging.INFO)
    _engine_log.propagate = False

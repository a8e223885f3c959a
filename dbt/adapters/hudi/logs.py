"""The adapter's log, which the engine's warnings go to as well."""

from __future__ import annotations

import logging

from dbt.adapters.events.logging import AdapterLogger

logger = AdapterLogger("Hudi")


class _ToDbtLog(logging.Handler):
    """Hands warnings of the engine to dbt's log."""

    def emit(self, record: logging.LogRecord) -> None:
        logger.warning("{}", record.getMessage())


_engine_log = logging.getLogger("hudi_engine")
if not any(isinstance(handler, _ToDbtLog) for handler in _engine_log.handlers):
    _engine_log.addHandler(_ToDbtLog(level=logging.WARNING))
    _engine_log.propagate = False

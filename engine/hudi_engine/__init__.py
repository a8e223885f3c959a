"""Read and write Apache Hudi tables with PySpark and Arrow, without the Hudi JVM bundle."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hudi_engine.catalog import DirectoryCatalog
    from hudi_engine.changes.source import register_change_source
    from hudi_engine.errors import (
        ConfigError,
        ConsumedMeanwhileError,
        CorruptTableError,
        DataError,
        HistoryGapError,
        HudiError,
        InvalidKeyError,
        PathEscapeError,
        PlannedMeanwhileError,
        RepeatedKeyError,
        SchemaError,
        ServiceError,
        StorageError,
        TableExistsError,
        TableNotFoundError,
        TaskMemoryError,
        TimelineError,
        UnsupportedTableError,
        WriteConflictError,
    )
    from hudi_engine.merge.modes.rule import MergeRule
    from hudi_engine.rows import Rows, read
    from hudi_engine.table import HudiTable
    from hudi_engine.table_rebuild import build_table, rebuild_table
    from hudi_engine.write.result import WriteResult

__version__ = "0.1.0"

__all__ = [
    "ConfigError",
    "ConsumedMeanwhileError",
    "CorruptTableError",
    "DataError",
    "DirectoryCatalog",
    "HistoryGapError",
    "HudiError",
    "HudiTable",
    "InvalidKeyError",
    "MergeRule",
    "PathEscapeError",
    "PlannedMeanwhileError",
    "RepeatedKeyError",
    "Rows",
    "SchemaError",
    "ServiceError",
    "StorageError",
    "TableExistsError",
    "TableNotFoundError",
    "TaskMemoryError",
    "TimelineError",
    "UnsupportedTableError",
    "WriteConflictError",
    "WriteResult",
    "build_table",
    "read",
    "rebuild_table",
    "register_change_source",
]

# A name is imported when it is first asked for: whoever only looks at a timeline does not wait for Spark, pandas and
# the writers. Names that are not here are errors.
_HOMES = {
    "DirectoryCatalog": "hudi_engine.catalog",
    "HudiTable": "hudi_engine.table",
    "MergeRule": "hudi_engine.merge.modes.rule",
    "Rows": "hudi_engine.rows",
    "WriteResult": "hudi_engine.write.result",
    "build_table": "hudi_engine.table_rebuild",
    "read": "hudi_engine.rows",
    "rebuild_table": "hudi_engine.table_rebuild",
    "register_change_source": "hudi_engine.changes.source",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(_HOMES.get(name, "hudi_engine.errors")), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

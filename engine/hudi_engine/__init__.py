"""Read and write Apache Hudi tables with PySpark and Arrow, without the Hudi JVM bundle."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hudi_engine.errors import (
        ConfigError,
        ConsumedMeanwhileError,
        CorruptTableError,
        DataError,
        HistoryGapError,
        HudiError,
        IncompleteWriteError,
        InvalidKeyError,
        PathEscapeError,
        PlannedMeanwhileError,
        RepeatedKeyError,
        SchemaError,
        ServiceError,
        StatementError,
        StorageError,
        TableExistsError,
        TableNotFoundError,
        TaskMemoryError,
        TimelineError,
        UnsupportedTableError,
        WriteConflictError,
    )
    from hudi_engine.format.merge.modes.rule import MergeRule
    from hudi_engine.format.storage.given import use_settings
    from hudi_engine.format.storage.planned import planned_writes
    from hudi_engine.spark.catalog import DirectoryCatalog
    from hudi_engine.spark.front.rebuild import build_table, rebuild_table
    from hudi_engine.spark.front.table import HudiTable
    from hudi_engine.spark.write.rows.clauses import MergeClauses, When
    from hudi_engine.spark.write.rows.replacement import EventWindow
    from hudi_engine.spark.write.rows.sides import ClauseRows
    from hudi_engine.table.front.table import Table, create_table, open_table
    from hudi_engine.table.reader import Rows, lookup, read
    from hudi_engine.table.write.inspection import before_commit
    from hudi_engine.table.write.result import WriteResult

__version__ = "0.1.0"

__all__ = [
    "ClauseRows",
    "ConfigError",
    "ConsumedMeanwhileError",
    "CorruptTableError",
    "DataError",
    "DirectoryCatalog",
    "EventWindow",
    "HistoryGapError",
    "HudiError",
    "HudiTable",
    "IncompleteWriteError",
    "InvalidKeyError",
    "MergeClauses",
    "MergeRule",
    "PathEscapeError",
    "PlannedMeanwhileError",
    "RepeatedKeyError",
    "Rows",
    "SchemaError",
    "ServiceError",
    "StatementError",
    "StorageError",
    "Table",
    "TableExistsError",
    "TableNotFoundError",
    "TaskMemoryError",
    "TimelineError",
    "UnsupportedTableError",
    "When",
    "WriteConflictError",
    "WriteResult",
    "before_commit",
    "build_table",
    "create_table",
    "lookup",
    "open_table",
    "planned_writes",
    "read",
    "rebuild_table",
    "use_settings",
]

# A name is imported when it is first asked for: whoever only looks at a timeline does not wait for Spark, pandas and
# the writers. Names that are not here are errors.
_HOMES = {
    "ClauseRows": "hudi_engine.spark.write.rows.sides",
    "DirectoryCatalog": "hudi_engine.spark.catalog",
    "EventWindow": "hudi_engine.spark.write.rows.replacement",
    "HudiTable": "hudi_engine.spark.front.table",
    "MergeClauses": "hudi_engine.spark.write.rows.clauses",
    "MergeRule": "hudi_engine.format.merge.modes.rule",
    "Table": "hudi_engine.table.front.table",
    "Rows": "hudi_engine.table.reader",
    "When": "hudi_engine.spark.write.rows.clauses",
    "WriteResult": "hudi_engine.table.write.result",
    "before_commit": "hudi_engine.table.write.inspection",
    "build_table": "hudi_engine.spark.front.rebuild",
    "create_table": "hudi_engine.table.front.table",
    "open_table": "hudi_engine.table.front.table",
    "lookup": "hudi_engine.table.reader",
    "planned_writes": "hudi_engine.format.storage.planned",
    "read": "hudi_engine.table.reader",
    "rebuild_table": "hudi_engine.spark.front.rebuild",
    "use_settings": "hudi_engine.format.storage.given",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES.get(name, "hudi_engine.errors")
    try:
        found: object = getattr(import_module(home), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("pyspark", "py4j"):
            raise ImportError(
                f"hudi_engine.{name} needs PySpark, which is not installed: pip install 'hudi-engine[spark]'"
            ) from error
        raise
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

"""Read and write Apache Hudi tables with PySpark and Arrow, without the Hudi JVM bundle."""

from hudi_engine.errors import (
    ConfigError,
    CorruptTableError,
    DataError,
    HudiError,
    InvalidKeyError,
    PathEscapeError,
    SchemaError,
    ServiceError,
    StorageError,
    TableExistsError,
    TableNotFoundError,
    TimelineError,
    UnsupportedTableError,
    WriteConflictError,
)
from hudi_engine.table import HudiTable
from hudi_engine.table_rebuild import rebuild_table
from hudi_engine.write.result import WriteResult

__all__ = [
    "ConfigError",
    "CorruptTableError",
    "DataError",
    "HudiError",
    "HudiTable",
    "InvalidKeyError",
    "PathEscapeError",
    "SchemaError",
    "ServiceError",
    "StorageError",
    "TableExistsError",
    "TableNotFoundError",
    "TimelineError",
    "UnsupportedTableError",
    "WriteConflictError",
    "WriteResult",
    "rebuild_table",
]

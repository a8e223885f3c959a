"""The front of the engine: a Hudi table as an object."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.given import public_location
from hudi_engine.spark.front.writes import Writes
from hudi_engine.spark.hive_sync import SyncedEntry, sync_hive
from hudi_engine.spark.write.rows.arguments import own_columns
from hudi_engine.table.front.handle import RawOptions
from hudi_engine.table.front.operations import TableOperations
from hudi_engine.table.snapshot.native import refuse_reserved
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.swap import recover_swap, table_storage
from hudi_engine.table.write.define.create_table import create_table
from hudi_engine.table.write.define.definition import TableArguments, check_arguments, defined_table
from hudi_engine.table.write.fit import refuse_false_marks

if TYPE_CHECKING:
    from typing_extensions import Unpack


class HudiTable(Writes, TableOperations):
    """A Hudi table at a path.

    Made by :meth:`create` or :meth:`open`. Every call reads the table again, so several objects, processes and writers
    may work on one path.

    Attributes:
        spark: The session that runs queries and writes.
        path: Base path as given, without credentials and settings of a URI.
        storage: The table's storage.
    """

    @classmethod
    def create(
        cls,
        spark: SparkSession,
        path: str,
        *,
        schema: StructType | str | None = None,
        **definition: Unpack[TableArguments],
    ) -> HudiTable:
        """Make an empty table (table version 6).

        All but the session and the path is given by name.

        Args:
            spark: The session.
            path: Base path: absolute, relative or a URI.
            schema: Columns when they are known, also as text (``id int, name string``); otherwise the first write brings them.
            name: Table name.
            record_key: Columns of the record key; None lets the writer generate keys (append-only tables).
            precombine_field: Ordering column: of two rows with a key the one with the larger value wins. Without it the
                row written last wins.
            partition_by: Partition columns; ``column:timestamp`` uses the timestamp key generator for that column.
            table_type: ``cow`` (copy-on-write, the default) or ``mor`` (merge-on-read).
            options: ``hoodie.*`` options. Those that define the table are stored with it, and may take the place of the
                arguments above (``hoodie.datasource.write.recordkey.field`` and so on); the others are defaults of this
                object's calls.

        Raises:
            ConfigError: The definition makes no sense; all problems in one message.
            SchemaError: A column of a name that is not free.
            TypeError: An argument of another name, or no ``name``.
            TableExistsError: A table, or another folder with files, is there.
        """
        check_arguments(definition, "HudiTable.create", "spark, path")
        path = public_location(os.fspath(path) if isinstance(path, os.PathLike) else path)
        arrow = None if schema is None else own_columns(spark, schema)
        if arrow is not None:
            refuse_reserved(arrow.names)
            refuse_false_marks(arrow, None)
        config = defined_table(arrow, **definition)
        recover_swap(path)
        storage = open_storage(path)
        create_table(storage, config, definition.get("options"))
        return cls(spark, path, storage, definition.get("options"))

    @classmethod
    def open(
        cls, spark: SparkSession, path: str, *, options: RawOptions | None = None, hold: bool = False
    ) -> HudiTable:
        """Open a table, also one that Apache Hudi wrote (table versions 4, 5, 6, 8, 9).

        Args:
            spark: The session.
            path: Base path.
            options: ``hoodie.*`` defaults of this object's calls.
            hold: Look at the table once: ``config``, ``schema`` and the first write go by what is read here. What others
                commit meanwhile is found when the write begins, as always.

        Raises:
            TableNotFoundError: There is no table.
            CorruptTableError: Its properties cannot be read.
            UnsupportedTableError: A version or feature this engine does not read.
        """
        resolve_options(options)
        path = public_location(os.fspath(path) if isinstance(path, os.PathLike) else path)
        storage = table_storage(path)
        if hold:
            return cls(spark, path, storage, options, TableState.load(storage))
        TableConfig.load(storage)
        return cls(spark, path, storage, options)

    def sync_hive(self, *, options: RawOptions | None = None) -> list[SyncedEntry]:
        """Make the entries of Hudi's form in the session's Hive metastore equal to the table.

        Args:
            options: ``hoodie.datasource.hive_sync.*``: database, table, partition extractor and which entries there are; whether
                sync is enabled does not count here.

        Raises:
            ConfigError: The session has no Hive metastore, or the options do not fit the table.
            TableExistsError: A name belongs to something else, such as the entry by which Spark reads the table.
            ServiceError: The metastore failed.
        """
        return sync_hive(self.spark, self.storage, self._resolved(options))

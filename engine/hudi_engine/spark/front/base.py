"""What every call on a table shares: session, storage, options."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from hudi_engine.format.config.options import Options, laid_over, resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.config.trusted_rules import SESSION_SETTING, trust_rules
from hudi_engine.format.storage.base import Storage
from hudi_engine.spark.catalog.session import sidecar_runner
from hudi_engine.spark.read.partition_filter import partitions_where
from hudi_engine.spark.schema.spark_types import arrow_to_spark
from hudi_engine.spark.services.clustering import run_large_in_spark, service_runner
from hudi_engine.table.snapshot.manifest import Published
from hudi_engine.table.state import TableState
from hudi_engine.table.table_services import TableServices

if TYPE_CHECKING:
    from typing_extensions import Self


RawOptions = Mapping[str, object]


class TableBase:
    """A table at a path, with the session that works on it.

    Attributes:
        spark: The session that runs queries and writes.
        path: Base path as given.
        storage: The table's storage.
        published: What the newest call of this object has published, None when none has.
    """

    _rows_read: TableState | None = None

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        storage: Storage,
        options: RawOptions | None = None,
        held: TableState | None = None,
    ) -> None:
        self.spark = spark
        self.path = path
        self.storage = storage
        self.published: Published | None = None
        self._options = dict(options or {})
        self._held = held
        self._columns: pa.Schema | None = None
        self._config = None if held is None else held.config
        trust_rules(spark.conf.get(SESSION_SETTING, None))

    @property
    def config(self) -> TableConfig:
        """The table's properties, read anew unless the object holds them."""
        return self._config or TableConfig.load(self.storage)

    @property
    def schema(self) -> StructType | None:
        """Data columns (without meta columns), None for a table that never had any."""
        arrow = (self._held or TableState.load(self.storage)).data_schema()
        return None if arrow is None else arrow_to_spark(arrow)

    def __repr__(self) -> str:
        config = self.config
        key = ", ".join(config.record_key_fields) or "generated"
        parts = [f"{self.path!r}", f"name={config.name!r}", config.table_type.value, f"key={key}"]
        if config.is_partitioned:
            parts.append(f"partitioned by {', '.join(field.name for field in config.partition_fields)}")
        return f"HudiTable({', '.join(parts)})"

    def as_read(self, state: TableState | None) -> Self:
        """Return this table for writes of rows that were made of its own: what others commit after that state is a conflict.

        Conditions and assignments are asked of that state. A subquery in them reads what Spark's catalog shows.

        Args:
            state: The table as it was before the rows, or a subquery, were read; None when they come from elsewhere.
        """
        table = copy.copy(self)
        table._rows_read = state
        return table

    def services(self, options: RawOptions | None = None) -> TableServices:
        """Return the table's services, which need no session, with the session's executors as their hands.

        Args:
            options: ``hoodie.*`` options of the calls.
        """
        return self._services(self._resolved(options))

    def _services(self, options: Options) -> TableServices:
        # what these do makes another table of the one that is held
        self._held = None
        return TableServices(
            self.storage,
            options,
            service_runner(self.spark),
            sidecar_runner(self.spark),
            self._config,
            self._note_published,
            run_large_in_spark(self.spark),
            lambda condition: partitions_where(self.spark, TableState.load(self.storage), condition),
        )

    def _note_published(self, published: Published | None) -> None:
        self.published = published

    def _resolved(self, options: RawOptions | None) -> Options:
        if not self._options or not isinstance(options, Mapping):
            return resolve_options(options if options is not None else self._options)
        # A limit of the call is compared with the table's, not with its default.
        given = {key: value for key, value in options.items() if value is not None}
        return resolve_options(laid_over(self._options, given))

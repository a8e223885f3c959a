"""The warehouse as clients of a server see it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace

from hudi_engine.spark.sql.held_drops import Holds
from hudi_engine.spark.sql.router import StatementRouter
from hudi_engine.spark.sql.session import StatementSession
from hudi_engine.spark.sql.warehouse import NewTable
from hudi_engine.table.write.result import WriteResult
from pyspark.sql import SparkSession

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.sql.creating import SqlWarehouse

_LOOK_EVERY_S = 5.0
_KEY = "primaryKey"
_SNAPSHOT_KEY = "dbt_scd_id"
_OF_SNAPSHOTS = frozenset({_SNAPSHOT_KEY, "dbt_valid_from", "dbt_valid_to"})


class ServedWarehouse(SqlWarehouse):
    """A warehouse whose tables dbt-spark makes too."""

    def notes(self) -> Mapping[str, str]:
        """Return none: a server has clients, and no run of dbt."""
        return {}

    def create_table(self, session: SparkSession, new: NewTable) -> WriteResult | None:
        """Make a table; the record key of a snapshot of dbt-spark is that of its rows.

        dbt-spark gives it the ``unique_key`` of its input, of which a snapshot keeps several rows: each new one would replace
        the one before.
        """
        given = new.options.get(_KEY)
        if (
            given
            and given != _SNAPSHOT_KEY
            and new.rows is not None
            and {*new.rows().columns} >= _OF_SNAPSHOTS
        ):
            logger.info(
                "{} is a snapshot: its record key is {}, not {}", new.name.label, _SNAPSHOT_KEY, given
            )
            new = replace(new, options={**new.options, _KEY: _SNAPSHOT_KEY})
        return super().create_table(session, new)


class Served:
    """Opens sessions for clients, which see the tables that other processes have made by then."""

    def __init__(self, warehouse: SqlWarehouse, hold_drops_s: float) -> None:
        self._warehouse = warehouse
        self._router = StatementRouter(warehouse)
        self._hold_drops_s = hold_drops_s
        self._holds: Holds = {}
        self._looked = time.monotonic()
        self._lock = threading.Lock()

    def open(self) -> StatementSession:
        """Open a session for a client."""
        return self._opened(self._warehouse.open_session())

    def adopt(self, spark: SparkSession) -> StatementSession:
        """Make a session for a client of one of Spark's."""
        self._warehouse.give_settings(spark)
        return self._opened(spark)

    def _opened(self, spark: SparkSession) -> StatementSession:
        self._look(spark)
        return StatementSession(
            spark, self._warehouse, self._router, hold_drops_s=self._hold_drops_s, holds=self._holds
        )

    def _look(self, spark: SparkSession) -> None:
        directory = self._warehouse.directory
        with self._lock:
            if directory is None or time.monotonic() - self._looked < _LOOK_EVERY_S:
                return
            directory.load(spark)
            self._looked = time.monotonic()

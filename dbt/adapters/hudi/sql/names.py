"""The names of a profile as `hudi_engine.spark.sql` asks for them."""

from __future__ import annotations

from hudi_engine.spark.catalog import TableName
from hudi_engine.spark.sql.warehouse import NewTable
from hudi_engine.table.write.result import WriteResult
from pyspark.sql import SparkSession

from dbt.adapters.hudi.spark.new_names import rename
from dbt.adapters.hudi.spark.warehouse import Warehouse
from dbt.adapters.hudi.sql.creating import create_table


class SqlWarehouse(Warehouse):
    """A warehouse in which statements make and rename tables."""

    def create_table(self, session: SparkSession, new: NewTable) -> WriteResult | None:
        """Make a table and its name; None when nothing was written."""
        return create_table(self, session, new)

    def rename(self, session: SparkSession, old: TableName, new: TableName) -> None:
        """Give a table or view another name."""
        rename(self, session, old, new)

"""What the statements need of the names they are about: where a table lies, and what a new one becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from hudi_engine.spark.catalog import CatalogEntry, DirectoryCatalog, TableName

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Unpack

    from hudi_engine import HudiTable
    from hudi_engine.spark.catalog.entry import NotesGiven
    from hudi_engine.table.write.result import WriteResult


@dataclass(frozen=True)
class NewTable:
    """A CREATE TABLE.

    Args:
        columns: The columns, in types that a table keeps; of a CREATE TABLE AS SELECT the query has them.
        rows: Has Spark analyse the query of a CREATE TABLE AS SELECT; None without one.
        location: As the statement has it; None for the place that its name has.
        replaces: CREATE OR REPLACE.
        if_not_exists: Content with a table or view that is there.
        comment: "" for none.
    """

    name: TableName
    columns: T.StructType
    rows: Callable[[], DataFrame] | None
    location: str | None
    options: Mapping[str, str]
    properties: Mapping[str, str]
    partition_by: Sequence[str]
    replaces: bool
    if_not_exists: bool
    comment: str = ""
    column_comments: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    """Properties that are the engine's own, kept with those of the statement."""


class Warehouse(Protocol):
    """The names that statements may use, kept in step with Spark's catalog."""

    @property
    def directory(self) -> DirectoryCatalog | None:
        """The names as files in the folders of the tables; None with a metastore."""

    @property
    def target_schema(self) -> str:
        """Schema of names without one, where Spark's current one is ``default``."""

    def schema_folder(self, schema: str) -> str:
        """Return where the tables of a schema lie."""

    def options_at(self, base: str) -> Mapping[str, str]:
        """Return the options for writes to the table at a folder."""

    def one_writer(self, session: SparkSession, base: str) -> AbstractContextManager[None]:
        """Let one thread of this process write to a table at a time."""

    def schemas(self, session: SparkSession) -> list[str]:
        """Return the names of all schemas."""

    def entries(self, session: SparkSession, schema: str) -> list[CatalogEntry]:
        """Return all tables and views of a schema."""

    def entry(self, session: SparkSession, schema: str, name: str) -> CatalogEntry | None:
        """Return the entry of a name; None when there is none."""

    def hudi_base(self, session: SparkSession, schema: str, name: str) -> str | None:
        """Return the folder of the Hudi table behind a name; None for anything else."""

    def is_foreign(self, session: SparkSession, schema: str, name: str) -> bool:
        """Tell whether a name is that of another writer's table."""

    def table(self, session: SparkSession, base: str) -> HudiTable:
        """Return the table at a folder."""

    def require_table(self, session: SparkSession, schema: str, name: str) -> HudiTable:
        """Return the Hudi table behind a name; raises for anything else."""

    def show(self, session: SparkSession, schema: str, name: str, table: HudiTable) -> None:
        """Make Spark's catalog show what a statement made of a table."""

    def register(
        self, session: SparkSession, schema: str, name: str, table: HudiTable, **notes: Unpack[NotesGiven]
    ) -> None:
        """Make Spark's catalog show a table, with notes that are kept with it."""

    def add_comments(
        self, session: SparkSession, schema: str, name: str, table: HudiTable, comments: Mapping[str, str]
    ) -> None:
        """Keep comments of some columns."""

    def drop(self, session: SparkSession, schema: str, name: str) -> None:
        """Drop a table with its files, or a view."""

    def save_view(self, session: SparkSession, schema: str, name: str) -> None:
        """Keep the definition of a view that Spark has made."""

    def create_schema(self, session: SparkSession, schema: str) -> None:
        """Make a schema unless it is there."""

    def drop_schema(self, session: SparkSession, schema: str) -> None:
        """Drop a schema with all that is in it."""


class StatementWarehouse(Warehouse, Protocol):
    """A warehouse in which statements make and rename tables."""

    def create_table(self, session: SparkSession, new: NewTable) -> WriteResult | None:
        """Make a table and its name; None when nothing was written, as where the statement is content with what is there."""

    def rename(self, session: SparkSession, old: TableName, new: TableName) -> None:
        """Give a table or view another name."""

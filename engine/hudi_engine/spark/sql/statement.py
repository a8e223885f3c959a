"""A parsed statement, the Hudi table it is about, and its result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from hudi_engine import HudiTable
from hudi_engine.errors import StatementError, TableNotFoundError
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.jvm.catalog import is_temporary_view
from hudi_engine.spark.jvm.plans import JavaPlan
from hudi_engine.spark.sql.warehouse import StatementWarehouse
from hudi_engine.table.write.result import WriteResult


@dataclass(frozen=True)
class StatementResult:
    """What a statement did that the engine ran.

    Args:
        frame: Its rows; None for a statement that has none.
        write: What it wrote; None for a statement that writes no rows.
        name: What was run, for a short message.
    """

    frame: DataFrame | None = None
    write: WriteResult | None = None
    name: str = "OK"


def data_columns(table: HudiTable) -> T.StructType:
    """Return the table's data columns; none before its first write."""
    return table.schema or T.StructType()


@dataclass(frozen=True)
class Target:
    """A Hudi table named in a statement; ``is_face``: by its read-only name (``_ro``, ``_rt``)."""

    schema: str
    name: str
    base: str
    alias: str | None
    is_face: bool

    @property
    def label(self) -> str:
        """The name in messages."""
        return f"{self.schema}.{self.name}"

    @property
    def own_name(self) -> tuple[str, ...]:
        """Parts of the name by whose last ones, or by all, the statement may call a column of the table."""
        return (_OWN_CATALOG, self.schema, self.name) if self.alias is None else (self.alias,)

    def set_columns(self, assignments: JavaPlan) -> list[str]:
        """Return the columns that a SET, or the list of an INSERT clause, gives values; refuses fields of structs."""
        own = [part.lower() for part in self.own_name]
        columns = []
        for item in plans.items(assignments):
            *qualifier, column = plans.texts(item.key().nameParts())
            if [part.lower() for part in qualifier] != own[len(own) - len(qualifier) :]:
                raise StatementError(
                    f"{'.'.join([*qualifier, column])} is no column of {self.label}: a struct is set as a whole "
                    "(s = named_struct(...)), unless it holds a field of the key or the partition, and a column is called by the "
                    "table's name or alias, or by its own name alone"
                )
            columns.append(column)
        self.refuse_twice(columns)
        return columns

    def refuse_twice(self, columns: Iterable[str]) -> None:
        """Raise StatementError where a statement gives a column two values."""
        times = Counter(column.lower() for column in columns)
        twice = [column for column, count in times.items() if count > 1]
        if twice:
            raise StatementError(
                f"{self.label}: the statement names {', '.join(twice)} more than once; give each column one value"
            )


def refused_face(label: str, base: str | None) -> StatementError:
    """Return the error of a statement that would change the second name of a merge-on-read table."""
    return StatementError(
        f"{label} is a read-only face of the Hudi table at {base}; write to the table itself"
    )


_OWN_CATALOG = "spark_catalog"


class OtherCatalogError(Exception):
    """A statement names something of another catalog: it is Spark's to run."""


@dataclass(frozen=True)
class Statement:
    """One statement; ``warned``: tables whose INSERT was warned of as it looks up no keys."""

    session: SparkSession
    text: str
    plan: JavaPlan
    warehouse: StatementWarehouse
    warned: set[str]
    ctes: JavaPlan | None = None

    def table(self, target: Target) -> HudiTable:
        """Return the table the statement is about, as it is on storage."""
        try:
            return self.warehouse.table(self.session, target.base)
        except TableNotFoundError as error:
            raise StatementError(
                f"{target.label} is at {target.base} in the catalog, but no Hudi table is there; drop it and rebuild it"
            ) from error

    @property
    def kind(self) -> str:
        """Class name of the plan."""
        return plans.kind(self.plan)

    def target(self) -> Target | None:
        """Return the Hudi table the statement is about, None when it is about something else."""
        node = self._target_node()
        parts, alias = plans.target_parts(node)
        named = self.lasting(parts)
        if named is None:
            return None
        schema, name = named
        base = self.warehouse.hudi_base(self.session, schema, name)
        if base is None:
            return None
        entry = self.warehouse.entry(self.session, schema, name)
        if entry is None:
            raise StatementError(
                f"{schema}.{name} is a part of the Hudi table at {base} that its reads need; name the table itself"
            )
        return Target(schema, name, base, alias, is_face=entry.is_face)

    def _target_node(self) -> JavaPlan:
        if self.kind == "MergeIntoTable":
            return self.plan.targetTable()
        for method in ("table", "child"):
            if plans.hasattr_java(self.plan, method):
                return getattr(self.plan, method)()
        raise StatementError(f"no target found in {self.kind}")

    def lasting(self, parts: list[str]) -> tuple[str, str] | None:
        """Return schema and name of a table or view, None for a temporary view, which is Spark's."""
        if len(parts) == 1 and is_temporary_view(self.session, parts[0]):
            return None
        return self.names(parts)

    def names(self, parts: list[str]) -> tuple[str, str]:
        """Return schema and name of a one, two or three part name; raises OtherCatalogError."""
        named = own_name(self.session, parts)
        if named is None:
            raise OtherCatalogError
        return named

    def check_catalog(self, parts: list[str]) -> None:
        """Raise OtherCatalogError unless a name is of Spark's own catalog, which the warehouse is known by."""
        if is_of_another_catalog(self.session, parts):
            raise OtherCatalogError


def is_of_another_catalog(session: SparkSession, parts: list[str]) -> bool:
    """Tell whether a name is of another catalog: Spark takes its first part for one wherever one of that name is set up."""
    first = parts[0] if len(parts) > 1 else None
    if first is not None and first.lower() == _OWN_CATALOG:
        return False
    named = first is not None and is_set_up_beside(session, first)
    return named or len(parts) > 2 or session.catalog.currentCatalog().lower() != _OWN_CATALOG


def is_set_up_beside(session: SparkSession, catalog: str) -> bool:
    """Tell whether a name is that of a configured catalog other than Spark's own."""
    other = catalog.lower() != _OWN_CATALOG
    return other and session.conf.get(f"spark.sql.catalog.{catalog}", None) is not None


def own_name(session: SparkSession, parts: list[str]) -> tuple[str, str] | None:
    """Return schema and name of a one, two or three part name, None for one of another catalog."""
    if is_of_another_catalog(session, parts):
        return None
    return (session.catalog.currentDatabase() if len(parts) == 1 else parts[-2]), parts[-1]

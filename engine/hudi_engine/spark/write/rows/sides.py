"""The clauses of a merge, each over the rows that it may look at: the table's, the source's, or both.

A row of the table without one in the source has no columns of the source, and a new row has none of the table. There a clause
is resolved while only the columns of its own side are to be seen: what names the other side is refused, and a name without
a qualifier is the own side's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from pyspark.errors import ParseException, PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from hudi_engine.errors import ConfigError
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.spark.jvm.frames import under_name
from hudi_engine.spark.read.reason import reason_of
from hudi_engine.spark.write.rows.arguments import resolving
from hudi_engine.spark.write.rows.settled import ACTION, CLAUSE

SOURCE, TARGET = "DBT_INTERNAL_SOURCE", "DBT_INTERNAL_DEST"
"""Names of the rows that come, and of the table's, in SQL of a write."""
STORED, CAME = "__hudi_stored", "__hudi_came"
"""True where a joined row has a row of the table, and one of the source; null elsewhere."""
_UNKNOWN = ("[UNRESOLVED_COLUMN", "[FIELD_NOT_FOUND")
_QUERY = re.compile(r"\bselect\b", re.IGNORECASE)
_VALUE, _TARGET = "__hudi_value_", "__hudi_target"
_GIVEN = "__hudi_given_"

Fit = Callable[["DataFrame", "StructField", str], "Column"]
"""Brings the value that a clause gives a column to the column's type: gets rows, which of their columns has the value, and the name
of the column."""


class ClauseRows(Enum):
    """The rows that a clause is about."""

    MATCHED = "WHEN MATCHED"
    NEW = "WHEN NOT MATCHED"
    LEFT = "WHEN NOT MATCHED BY SOURCE"


@dataclass(frozen=True)
class Clause:
    """One clause.

    Args:
        condition: Only those that fulfil it; None for all.
    """

    rows: ClauseRows
    action: str
    condition: Column | None
    values: Mapping[str, Column]
    fit: Fit


@dataclass(frozen=True)
class ClauseSql:
    """An expression of a merge, for messages.

    Args:
        rows: The rows it is about; None for the condition that joins.
        what: Begins the message, and ends before "refers to" or "cannot be resolved".
        column: Makes the expression; may raise what Spark's parser raises.
    """

    rows: ClauseRows | None
    what: str
    column: Callable[[], Column]


@dataclass(frozen=True)
class Sides:
    """The two sides of a merge.

    Args:
        named: Parts of the table's full name, the last of which is ``target``, where the rows have such a name.
    """

    source: str
    target: str
    named: tuple[str, ...] = ()

    def taken(
        self,
        target: DataFrame,
        source: DataFrame,
        on: Column,
        clauses: Sequence[Clause],
        names: Sequence[str],
    ) -> tuple[DataFrame, dict[str, Column]]:
        """Return the rows that some clause takes, the first that holds, and what each column becomes.

        The rows have the table's columns under its name, the action as ACTION, the clause's number as CLAUSE, and STORED.

        Args:
            clauses: The clauses; of those about the same rows the first that holds takes a row.
        """
        kinds = {each.rows for each in clauses}
        how = {(True, True): "full", (True, False): "right", (False, True): "left"}
        rows = target.withColumn(STORED, F.lit(True)).join(
            source.withColumn(CAME, F.lit(True)),
            on,
            how.get((ClauseRows.NEW in kinds, ClauseRows.LEFT in kinds), "inner"),
        )
        values = [f"{_VALUE}{number}" for number in range(len(names))]
        helpers = [STORED, CAME, CLAUSE, *values]
        rows = rows.withColumn(CLAUSE, F.lit(None).cast("int")).withColumns(
            dict.fromkeys(values, F.lit(None))
        )
        rows = _with_clauses(rows, ClauseRows.MATCHED, clauses, names)
        shown = [F.col(f"{quoted(self.target)}.*")]
        if ClauseRows.NEW in kinds:
            hidden = F.struct(*shown).alias(_TARGET)
            rows = rows.select(F.col(f"{quoted(self.source)}.*"), hidden, *helpers)
            rows = _with_clauses(rows, ClauseRows.NEW, clauses, names)
            shown = [F.col(f"{_TARGET}.*")]
        rows = under_name(rows.select(*shown, *helpers), self.named or (self.target,))
        rows = _with_clauses(rows, ClauseRows.LEFT, clauses, names).where(F.col(CLAUSE).isNotNull())
        action = F.lit(None).cast("string")
        for number, each in enumerate(clauses):
            action = F.when(F.col(CLAUSE) == number, each.action).otherwise(action)
        return rows.withColumn(ACTION, action), dict(zip(names, map(F.col, values), strict=True))

    @contextmanager
    def explained(
        self, texts: Callable[[], Sequence[ClauseSql]], target: DataFrame | None, source: DataFrame
    ) -> Iterator[None]:
        """Turn Spark's refusal of a merge into ConfigError with the clause that it is about, and what is legal there.

        Args:
            texts: All expressions of the merge; each is tried by itself once they fail together.
            target: The table's rows under their name, None for a table that has none yet.
        """
        try:
            yield
        except PySparkException:
            for each in texts():
                if target is not None or each.rows is ClauseRows.NEW:
                    self._try(each, target, source)
            with resolving("the clauses of the merge cannot be resolved together", self._legal(None)):
                raise

    def refuse_unknown(self, texts: Sequence[ClauseSql], target: DataFrame, source: DataFrame) -> None:
        """Refuse what is no SQL, or names a column that neither side has; other reasons Spark has may pass until it counts.

        What has a query of its own is let be: the tables in it may be others by then.
        """
        for each in texts:
            if _QUERY.search(each.what):
                continue
            try:
                self._try(each, target, source)
            except ConfigError as error:
                reason = error.__cause__
                unknown = isinstance(reason, PySparkException) and str(reason).lstrip().startswith(_UNKNOWN)
                if unknown or isinstance(reason, ParseException):
                    raise

    def _try(self, text: ClauseSql, target: DataFrame | None, source: DataFrame) -> None:
        """Resolve one expression over the sides that its rows have; raises ConfigError where Spark refuses it."""
        own, other = source, target
        if target is not None and text.rows is ClauseRows.LEFT:
            own, other = target, source
        elif target is not None and text.rows is not ClauseRows.NEW:
            own, other = source.crossJoin(target), None
        try:
            own.select(text.column())
        except PySparkException as error:
            one_sided = text.rows in (ClauseRows.NEW, ClauseRows.LEFT)
            name = _unresolved(error) if one_sided else None
            if name is not None and self._is_of(name, other, of_source=text.rows is ClauseRows.LEFT):
                side = "source" if text.rows is ClauseRows.LEFT else "table"
                reason = f"refers to {name.replace('`', '')}, a column of the {side}"
            else:
                reason = f"cannot be resolved: {reason_of(error)}"
            raise ConfigError(f"{text.what} {reason}. {self._legal(text.rows)}") from error

    def _is_of(self, name: str, side: DataFrame | None, *, of_source: bool) -> bool:
        """Tell whether a name that one side does not have is the other's."""
        first, dot, _ = name.partition("`.")
        if dot and first.strip("`").lower() == (self.source if of_source else self.target).lower():
            return True
        try:
            return side is not None and bool(side.select(F.expr(name)).columns)
        except PySparkException:
            return False

    def _legal(self, rows: ClauseRows | None) -> str:
        if rows is ClauseRows.LEFT:
            return (
                "It is about rows of the table that the source has none for: use columns of the table only, as "
                f"{self.target}.column"
            )
        if rows is ClauseRows.NEW:
            return f"It is about rows that only the source has: use columns of the source only, as {self.source}.column"
        return f"Use columns of the table as {self.target}.column and of the data as {self.source}.column"


def holds(condition: Column | None) -> Column:
    """Return whether a condition is true; no condition is, and null is not."""
    return F.lit(True) if condition is None else F.coalesce(condition, F.lit(False))


def _with_clauses(
    rows: DataFrame, kind: ClauseRows, clauses: Sequence[Clause], names: Sequence[str]
) -> DataFrame:
    """Return joined rows with the number of the clause about rows of a kind that takes each, and the values it gives."""
    own = [(number, each) for number, each in enumerate(clauses) if each.rows is kind]
    if not own:
        return rows
    stored, came = F.col(STORED).isNotNull(), F.col(CAME).isNotNull()
    about = {
        ClauseRows.MATCHED: stored & came,
        ClauseRows.NEW: came & ~stored,
        ClauseRows.LEFT: stored & ~came,
    }[kind]
    chosen = F.col(CLAUSE)
    for number, each in reversed(own):
        chosen = F.when(about & holds(each.condition), F.lit(number)).otherwise(chosen)
    # each by itself: in one CASE the type of one clause's value would change those of the others
    given = {
        f"{_GIVEN}{number}_{place}": F.when(F.col(CLAUSE) == number, each.values[name])
        for number, each in own
        for place, name in enumerate(names)
    }
    rows = rows.withColumn(CLAUSE, chosen).withColumns(given)
    kinds = {field.name: field for field in rows.schema.fields if field.name in given}
    values = {}
    for place, name in enumerate(names):
        value = F.col(f"{_VALUE}{place}")
        for number, each in reversed(own):
            fitted = each.fit(rows, kinds[f"{_GIVEN}{number}_{place}"], name)
            value = F.when(F.col(CLAUSE) == number, fitted).otherwise(value)
        values[f"{_VALUE}{place}"] = value
    return rows.withColumns(values).drop(*given)


def _unresolved(error: PySparkException) -> str | None:
    """Return the name, in backticks, that Spark does not find; None for another error."""
    if not str(error).lstrip().startswith("[UNRESOLVED_COLUMN"):
        return None
    return (error.getMessageParameters() or {}).get("objectName")

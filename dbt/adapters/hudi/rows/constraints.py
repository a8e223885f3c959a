"""NOT NULL and CHECK of a contract, tested on the rows before anything is committed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hudi_engine.spark.read.expression import expression
from hudi_engine.spark.sql.not_null import row_shown
from hudi_engine.spark.write.rows.arguments import resolving
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


@dataclass(frozen=True)
class Constraint:
    """A condition every row must meet."""

    name: str
    condition: str


def read_constraints(model: Mapping[str, Any]) -> tuple[Constraint, ...]:
    """Return the enforced constraints of a model with an enforced contract; none otherwise."""
    if not (model["config"].get("contract") or {}).get("enforced"):
        return ()
    found: list[Constraint] = []
    for item in model.get("constraints") or ():
        found += _conditions(item, item.get("columns") or (), "check")
    for name, column in (model.get("columns") or {}).items():
        for item in column.get("constraints") or ():
            found += _conditions(item, (name,), f"check on {name}")
    return tuple(found)


def _conditions(item: Mapping[str, Any], columns: Sequence[str], name: str) -> list[Constraint]:
    kind = getattr(item.get("type"), "value", item.get("type"))
    if kind == "not_null":
        return [Constraint(f"not null {column}", f"`{column}` is not null") for column in columns]
    if kind == "check" and item.get("expression"):
        return [Constraint(str(item.get("name") or name), str(item["expression"]))]
    return []


def broken(frame: DataFrame, constraints: Iterable[Constraint], only: Column) -> list[Column]:
    """Return for each constraint a text where a row breaks it, null elsewhere."""
    return [
        F.when(only & ~_met(frame, each), F.lit(f"constraint violated: {each.name}: {each.condition}"))
        for each in constraints
    ]


def _met(frame: DataFrame, constraint: Constraint) -> Column:
    """Return whether a row meets a constraint; null does."""
    with resolving(f"the constraint {constraint.name} ({constraint.condition}) cannot be evaluated"):
        met = F.coalesce(expression(constraint.condition), F.lit(True))
        frame.where(met)
    return met


def checked(
    frame: DataFrame,
    constraints: Iterable[Constraint],
    names: Sequence[str] | None = None,
    only: Column | None = None,
) -> DataFrame:
    """Return the same rows; reading one that breaks a constraint fails with the constraint's name and that row.

    Args:
        names: The columns that are shown of such a row; None for all.
        only: Which rows must; None for all.
    """
    applies = F.lit(True) if only is None else only
    for constraint in constraints:
        met = _met(frame, constraint)
        message = F.concat(
            F.lit(
                f"constraint violated: {constraint.name}: {constraint.condition}; nothing was written; a row that breaks it: "
            ),
            row_shown(names or frame.columns),
        )
        if frame.sparkSession.version.startswith("3."):
            # Spark 3 evaluates this for rows that a later join drops, unless it differs from task to task
            message = F.when(F.spark_partition_id() >= 0, message)
        broken = F.raise_error(message).cast("boolean")
        frame = frame.where(F.when(~applies | met, F.lit(True)).otherwise(broken))
    return frame

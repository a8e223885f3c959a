"""NOT NULL and CHECK of a contract, tested on the rows before anything is committed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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


def read_constraints(model: Mapping[str, object]) -> tuple[Constraint, ...]:
    """Return the enforced constraints of a model with an enforced contract; none otherwise."""
    config = model.get("config")
    contract = config.get("contract") if isinstance(config, Mapping) else None
    if not isinstance(contract, Mapping) or not contract.get("enforced"):
        return ()
    found = [*_of_model(model.get("constraints"))]
    columns = model.get("columns")
    for name, column in columns.items() if isinstance(columns, Mapping) else ():
        found.extend(_of_column(str(name), column))
    return tuple(found)


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
        with resolving(f"the constraint {constraint.name} ({constraint.condition}) cannot be evaluated"):
            met = F.coalesce(expression(constraint.condition), F.lit(True))
            frame.where(met)
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


def _of_model(raw: object) -> Iterable[Constraint]:
    for item in _dicts(raw):
        kind = _kind(item)
        if kind == "check" and item.get("expression"):
            yield Constraint(str(item.get("name") or "check"), str(item["expression"]))
        elif kind == "not_null":
            for column in item.get("columns") or ():  # type: ignore[attr-defined]
                yield Constraint(f"not null {column}", f"`{column}` is not null")


def _of_column(name: str, raw: object) -> Iterable[Constraint]:
    if not isinstance(raw, Mapping):
        return
    for item in _dicts(raw.get("constraints")):
        kind = _kind(item)
        if kind == "not_null":
            yield Constraint(f"not null {name}", f"`{name}` is not null")
        elif kind == "check" and item.get("expression"):
            yield Constraint(str(item.get("name") or f"check on {name}"), str(item["expression"]))


def _kind(item: Mapping[str, object]) -> str:
    kind = item.get("type")
    return str(getattr(kind, "value", kind))


def _dicts(raw: object) -> Iterable[Mapping[str, object]]:
    return [item for item in raw if isinstance(item, Mapping)] if isinstance(raw, (list, tuple)) else ()

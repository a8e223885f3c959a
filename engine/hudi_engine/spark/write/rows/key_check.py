"""Whether the rows of a MERGE are those that their keys find: an upsert looks a row up by its record key and partition alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from hudi_engine.format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.spark.write.rows.settled import ACTION, CHANGES_KEY, DELETE, INSERT, OLD_KEY, OLD_PARTITION

_TIMES, _KEPT, _NUMBER, _STORED = (f"__hudi_check_{name}" for name in ("times", "kept", "number", "stored"))


@dataclass(frozen=True)
class KeyCheck:
    """Fails the rows of a MERGE that would change another stored row than the one they were made of, before the commit.

    Args:
        colliding: The stored rows whose key an inserted row may have; None when ON leaves none of them unmatched.
    """

    label: str
    columns: Sequence[str]
    advice: str
    colliding: Column | None

    def checked(self, placed: DataFrame, stored: DataFrame, everywhere: bool) -> DataFrame:
        """Return the rows, reading a wrong one of which fails; of several deletes of one stored row one stays."""
        place = [RECORD_KEY] if everywhere else [RECORD_KEY, PARTITION_PATH]
        key = Window.partitionBy(*place)
        matched, deletes = F.col(ACTION) != INSERT, F.col(ACTION) == DELETE
        rows = placed.withColumns(
            {
                _TIMES: F.count(F.when(matched, 1)).over(key),
                _KEPT: F.max(matched & ~deletes).over(key),
                _NUMBER: F.row_number().over(key.orderBy(~matched)),
            }
        )
        rows = rows.where(F.col(_KEPT) | ~deletes | (F.col(_NUMBER) == 1))
        olds = dict(zip((RECORD_KEY, PARTITION_PATH), (OLD_KEY, OLD_PARTITION)))
        stays = reduce(and_, (F.col(name).eqNullSafe(F.col(olds[name])) for name in place))
        columns = ", ".join(self.columns)
        problem = F.when(
            matched & F.col(CHANGES_KEY) & ~stays,
            f" changes {columns}, by which a stored row is found; delete the row and insert it, or {self.advice}",
        ).when(
            matched & (F.col(_TIMES) > 1) & F.col(_KEPT),
            " is matched by several rows of the source; give one for each",
        )
        if self.colliding is not None:
            held = {name: f"{_STORED}{number}" for number, name in enumerate(place)}
            known = stored.where(self.colliding).select(*(F.col(name).alias(held[name]) for name in place))
            same = reduce(and_, (F.col(name) == F.col(other) for name, other in held.items()))
            rows = rows.join(known.distinct().withColumn(_STORED, F.lit(True)), same, "left")
            problem = problem.when(
                ~matched & F.col(_STORED).isNotNull(),
                f" is stored and not matched, so that it would be inserted over the stored row; {self.advice}, and put other "
                "conditions behind WHEN MATCHED AND",
            )
        shown = F.concat_ws(
            ", ",
            *(F.concat(F.lit(f"{name} "), F.col(quoted(name)).cast("string")) for name in self._shown(rows)),
        )
        failed = F.raise_error(F.concat(F.lit(f"{self.label}: the row with "), shown, problem))
        # as a value and not as a filter, which Spark may evaluate before the joins
        rows = rows.withColumn(ACTION, F.when(problem.isNotNull(), failed).otherwise(F.col(ACTION)))
        return rows.select(*(quoted(name) for name in placed.columns if name != CHANGES_KEY))

    def _shown(self, rows: DataFrame) -> list[str]:
        known = {name.lower() for name in rows.columns}
        return [name for name in self.columns if name.lower() in known]

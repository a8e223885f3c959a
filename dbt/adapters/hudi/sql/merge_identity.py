"""What ties the rows that a MERGE makes to the rows that are stored: the record key, and the partition of keys that are its own.

An upsert finds the stored row of a new one by these columns alone. A MERGE whose ON or SET says something else would write over
other rows, or beside the one it means; each such row fails the statement while it is written, before the commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable
from hudi_engine.config.options import Options
from hudi_engine.index.lookup.kinds import index_kind
from hudi_engine.schema.any_case import spellings
from hudi_engine.write.define.table_options import with_table_options
from hudi_engine.write.operation import UPSERT
from hudi_engine.write.rows.settled import ACTION, DELETE
from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from dbt.adapters.hudi.rows.builds import data_columns
from dbt.adapters.hudi.sql import plans

_TIMES, _STORED = "__dbt_hudi_times", "__dbt_hudi_stored"
_KEPT, _NUMBER = "__dbt_hudi_kept", "__dbt_hudi_number"


@dataclass(frozen=True)
class Identity:
    """The columns that say which stored row a row is.

    Args:
        label: The table, for messages.
        key: Record key columns.
        columns: These, and partition columns unless a key is unique in the whole table.
    """

    label: str
    key: tuple[str, ...]
    columns: tuple[str, ...]

    @classmethod
    def of(cls, table: HudiTable, label: str, options: Options) -> Identity:
        """Return that of a table, for writes with some options over those that the table keeps, its index among them.

        Raises:
            ConfigError: The options contradict the table.
            DbtRuntimeError: One of the columns is inside a struct.
        """
        index = index_kind(with_table_options(table.config, options, UPSERT.name.value))
        fields = () if index.is_global else table.config.partition_fields
        exact = spellings(data_columns(table).names)
        names = [*table.config.record_key_fields, *(each.name for each in fields)]
        inside = [name for name in names if name not in exact]
        if inside:
            raise DbtRuntimeError(
                f"MERGE INTO {label} is refused: {', '.join(inside)}, by which rows are found, is no column of its own; "
                "use an incremental model or HudiTable.merge"
            )
        found = tuple(dict.fromkeys(exact[name] for name in names))
        return cls(label, found[: len(table.config.record_key_fields)], found)

    def is_compared_by(self, condition: plans.JavaPlan) -> bool:
        """Tell whether an ON is the equality of the key, and perhaps of the partition: what is not matched is not stored."""
        found = set()
        for each in _conjuncts(condition):
            if plans.kind(each) != "EqualTo":
                return False
            sides = [each.left(), each.right()]
            if any(plans.kind(side) != "UnresolvedAttribute" for side in sides):
                return False
            left, right = (plans.texts(side.nameParts()) for side in sides)
            if left[-1].lower() != right[-1].lower() or left[:-1] == right[:-1]:
                return False
            found.add(left[-1].lower())
        return {each.lower() for each in self.key} <= found <= {each.lower() for each in self.columns}

    def check(
        self,
        rows: DataFrame,
        target: str,
        matched: Column,
        values: Mapping[str, Column],
        stored: DataFrame | None,
    ) -> tuple[DataFrame, dict[str, Column]]:
        """Return rows and the values of these columns, whose reading fails where a row is not the one that the write will find.

        A row that several rows of the source delete, and that none of them updates, is deleted once.

        Args:
            rows: Target and source joined, only rows that some clause takes, with the action.
            target: Name of the target in ``rows``.
            matched: Whether a row is stored.
            values: What each of these columns becomes.
            stored: The table's rows, when an ON may leave stored keys unmatched; None when it cannot.
        """
        names = {column: f"__dbt_hudi_{number}" for number, column in enumerate(self.columns)}
        new = rows.select("*", *(values[column].alias(name) for column, name in names.items()))
        places = Window.partitionBy(*names.values())
        new = _deleted_once(new.withColumn(_TIMES, F.count(F.when(matched, 1)).over(places)), matched, places)
        moved = reduce(
            or_,
            (~F.col(name).eqNullSafe(F.col(f"`{target}`.`{column}`")) for column, name in names.items()),
        )
        columns = ", ".join(self.columns)
        problem = F.when(
            matched & moved,
            F.lit(
                f" changes {columns}, by which a stored row is found; delete the row and insert it, or compare these columns in ON"
            ),
        ).when(
            matched & (F.col(_TIMES) > 1) & F.col(_KEPT),
            F.lit(" is matched by several rows of the source; give one for each"),
        )
        if stored is not None:
            known = stored.select(
                *(F.col(f"`{column}`").alias(f"{name}_s") for column, name in names.items())
            )
            same = reduce(and_, (F.col(name).eqNullSafe(F.col(f"{name}_s")) for name in names.values()))
            new = new.join(known.distinct().withColumn(_STORED, F.lit(True)), same, "left")
            problem = problem.when(
                ~matched & F.col(_STORED).isNotNull(),
                F.lit(
                    f" is stored and not matched, so that it would be inserted over the stored row; compare {columns} in ON, and "
                    "put other conditions behind WHEN MATCHED AND"
                ),
            )
        shown = F.concat_ws(
            ", ", *(F.concat(F.lit(f"{each} "), F.col(names[each]).cast("string")) for each in names)
        )
        failed = F.raise_error(F.concat(F.lit(f"MERGE INTO {self.label}: the row with "), shown, problem))
        first = next(iter(names))
        checked = {column: F.col(name) for column, name in names.items()}
        return new, {**checked, first: F.when(problem.isNotNull(), failed).otherwise(checked[first])}


def _deleted_once(rows: DataFrame, matched: Column, places: WindowSpec) -> DataFrame:
    """Return rows without further deletes of a stored row that all clauses delete, and whether one of them keeps it."""
    deletes = F.col(ACTION) == DELETE
    rows = rows.withColumn(_KEPT, F.max(matched & ~deletes).over(places))
    rows = rows.withColumn(_NUMBER, F.row_number().over(places.orderBy(~matched)))
    return rows.where(F.col(_KEPT) | ~deletes | (F.col(_NUMBER) == 1))


def _conjuncts(condition: plans.JavaPlan) -> Iterator[plans.JavaPlan]:
    if plans.kind(condition) == "And":
        yield from _conjuncts(condition.left())
        yield from _conjuncts(condition.right())
    else:
        yield condition

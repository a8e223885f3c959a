"""What ties the rows that a MERGE makes to the rows that are stored: the record key, and the partition of keys that are its own.

An upsert finds the stored row of a new one by these columns alone. A MERGE whose ON or SET says something else would write over
other rows, or beside the one it means; each such row fails the statement while it is written, before the commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable
from hudi_engine.format.config.options import Options
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.format.schema.meta_fields import PARTITION_PATH
from hudi_engine.spark.read.named import under_name
from hudi_engine.spark.write.rows.key_columns import with_key_columns
from hudi_engine.spark.write.rows.settled import OLD_PARTITION
from hudi_engine.table.lookup.kinds import index_kind
from hudi_engine.table.state import TableState
from hudi_engine.table.write.define.table_options import with_table_options
from hudi_engine.table.write.operation import UPSERT
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dbt.adapters.hudi.sql.merge_deletes import KEPT, deleted_once
from dbt.adapters.hudi.sql.merge_spellings import (
    BLANK_IS_STORED,
    Spelling,
    advice_for_on,
    cut_times,
    spellings_of_keys,
    unlike_columns,
)

_TIMES, _STORED = "__dbt_hudi_times", "__dbt_hudi_stored"
_HELD, _PATH = "__dbt_hudi_held", "__dbt_hudi_path"
_TIMES_OF = "timestamp"


@dataclass(frozen=True)
class Identity:
    """The columns that say which stored row a row is.

    Args:
        columns: These, and partition columns unless a key is unique in the whole table.
        dated: Those of them that are no part of the key and of whose values many make one partition, such as times of a day.
        spelled: What stands in paths and keys where a column has no value, or one that is not its own, for those that may have it.
        unlike: Those that the source of the rows has in a type whose values may become others, with the types they get.
    """

    label: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    dated: tuple[str, ...]
    spelled: Mapping[str, Spelling]
    unlike: Mapping[str, str]
    options: Options

    @classmethod
    def of(
        cls, table: HudiTable, label: str, options: Options, columns: T.StructType, source: T.StructType
    ) -> Identity:
        """Return that of a table, for writes with some options over those that the table keeps, its index among them.

        Args:
            columns: The table's data columns, as the write finds them.
            source: The columns of the rows that are merged.

        Raises:
            ConfigError: The options contradict the table.
            DbtRuntimeError: One of the columns is inside a struct.
        """
        options = with_table_options(table.config, options, UPSERT.name.value)
        fields = () if index_kind(options).is_global else table.config.partition_fields
        exact = spellings(columns.names)
        names = [*table.config.record_key_fields, *(each.name for each in fields)]
        inside = [name for name in names if name not in exact]
        if inside:
            raise DbtRuntimeError(
                f"MERGE INTO {label} is refused: {', '.join(inside)}, by which rows are found, is no column of its own; "
                "use an incremental model or HudiTable.merge"
            )
        found = tuple(dict.fromkeys(exact[name] for name in names))
        key = found[: len(table.config.record_key_fields)]
        dated = {exact[each.name] for each in fields if each.kind == _TIMES_OF} - {*key}
        own = [columns[each] for each in found]
        spelled = spellings_of_keys(own, key, dated, cut_times(table, own, options))
        return cls(label, key, found, tuple(sorted(dated)), spelled, unlike_columns(own, source), options)

    def with_partition(
        self, rows: DataFrame, values: Mapping[str, Column], table: HudiTable, named: Sequence[str]
    ) -> DataFrame:
        """Return the same rows under their name, with the partition that their new values give where times make it.

        Args:
            named: The name by which the rows' columns of the table are called.
        """
        if not self.dated:
            return rows
        names = [each.name for each in table.config.partition_fields]
        exact = spellings(values)
        held = rows.select(
            F.struct("*").alias(_HELD), *(values[exact[name]].alias(exact[name]) for name in names)
        )
        schema = TableState.load(table.storage).data_schema()
        assert schema is not None
        placed = with_key_columns(held, table.config, schema=schema, options=self.options, keyed=False)
        return under_name(placed.select(f"{_HELD}.*", F.col(PARTITION_PATH).alias(_PATH)), named)

    def may_be_stored(self, rows: DataFrame, compared: Set[str] | None) -> DataFrame | None:
        """Return the stored rows of which new ones that match none may have the key; None where there are none.

        Where the key is compared, and perhaps the partition, those are rows in which = finds no value: null, and others like it.
        Columns whose values become others on their way to a key, by their type or by their text, may not be equal and be one key.

        Args:
            compared: Columns, in lower case, of which an ON says that they are equal, and nothing else; None for another ON.
        """
        plain = {each.lower() for each in self._plain if each not in self._cut and each not in self.unlike}
        if compared is None or not {each.lower() for each in self.key} <= compared <= plain:
            return rows
        blank = self._is_blank({column: column for column in self._plain if column.lower() in compared})
        return None if blank is None else rows.where(blank)

    def _is_blank(self, names: Mapping[str, str]) -> Column | None:
        """Tell whether another row may have the key of this one, and other values; None where each key has its values."""
        found = [
            self.spelled[column].is_blank(F.col(f"`{name}`"))
            for column, name in names.items()
            if column in self.spelled
        ]
        return reduce(or_, found) if found else None

    def _with_stored(self, new: DataFrame, found_by: Mapping[str, str], stored: DataFrame) -> DataFrame:
        """Return new rows with whether a stored one has their key; ``found_by`` has the stored columns by those of new rows."""
        sides = {
            f"{name}_s": (self._same(column, F.col(name)), self._same(column, F.col(f"`{column}`")))
            for name, column in found_by.items()
        }
        known = stored.select(*(old.alias(name) for name, (_, old) in sides.items())).distinct()
        same = reduce(and_, (value.eqNullSafe(F.col(name)) for name, (value, _) in sides.items()))
        return new.join(known.withColumn(_STORED, F.lit(True)), same, "left")

    def _same(self, column: str, value: Column) -> Column:
        return self.spelled[column].same(value) if column in self.spelled else value

    @property
    def _plain(self) -> list[str]:
        """The columns whose values are one key or one partition each."""
        return [each for each in self.columns if each not in self.dated]

    @property
    def _cut(self) -> list[str]:
        """Those of them of whose times all in a millisecond are one key or partition."""
        return [each for each, spelled in self.spelled.items() if spelled.cut is not None]

    @property
    def _in_on(self) -> str:
        """What to compare in an ON."""
        return advice_for_on(self._plain, self.dated, self._cut, self.unlike)

    def _moved(self, names: Mapping[str, str], target: str) -> Column:
        """Tell whether a row's new values, by the names given, are of another key or partition than those that are stored."""

        def differs(name: str, column: str) -> Column:
            stored = self._same(column, F.col(f"`{target}`.`{column}`"))
            return ~self._same(column, F.col(name)).eqNullSafe(stored)

        moved = reduce(or_, (differs(names[column], column) for column in self._plain))
        for column in self.dated:
            moved = moved | (differs(names[column], column) & differs(_PATH, OLD_PARTITION))
        return moved

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
            stored: The table's rows, when an ON may leave stored keys unmatched; None when it cannot.
        """
        names = {column: f"__dbt_hudi_{number}" for number, column in enumerate(self.columns)}
        new = rows.select("*", *(values[column].alias(name) for column, name in names.items()))
        found_by = {names[column]: column for column in self._plain}
        if self.dated:
            found_by[_PATH] = OLD_PARTITION
        places = Window.partitionBy(*(self._same(column, F.col(name)) for name, column in found_by.items()))
        new = deleted_once(new.withColumn(_TIMES, F.count(F.when(matched, 1)).over(places)), matched, places)
        moved = self._moved(names, target)
        columns = ", ".join(self.columns)
        problem = F.when(
            matched & moved,
            F.lit(
                f" changes {columns}, by which a stored row is found; delete the row and insert it, or {self._in_on}"
            ),
        ).when(
            matched & (F.col(_TIMES) > 1) & F.col(KEPT),
            F.lit(" is matched by several rows of the source; give one for each"),
        )
        if stored is not None:
            new = self._with_stored(new, found_by, stored)
            is_stored = ~matched & F.col(_STORED).isNotNull()
            blank = self._is_blank({column: name for name, column in found_by.items()})
            problem = problem.when(
                is_stored & (F.lit(False) if blank is None else blank),
                F.lit(
                    f"{BLANK_IS_STORED}; compare {columns} by <=> in ON, or give the source the stored values"
                ),
            ).when(
                is_stored,
                F.lit(
                    f" is stored and not matched, so that it would be inserted over the stored row; {self._in_on}, and put other "
                    "conditions behind WHEN MATCHED AND"
                ),
            )
        shown = F.concat_ws(
            ", ", *(F.concat(F.lit(f"{each} "), F.col(names[each]).cast("string")) for each in names)
        )
        failed = F.raise_error(F.concat(F.lit(f"MERGE INTO {self.label}: the row with "), shown, problem))
        first = next(iter(names))
        checked = {column: F.col(name) for column, name in names.items()}
        return new, {**checked, first: F.when(problem.isNotNull(), failed).otherwise(checked[first])}

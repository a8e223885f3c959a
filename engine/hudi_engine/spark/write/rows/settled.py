"""Rows of which it is decided what becomes of them, as one batch: updates in their places, deletes, new rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.merge.modes.registry import keeps_newer_rows, merge_rule
from hudi_engine.format.schema.meta_fields import DELETES, IS_DELETED, PARTITION_PATH, RECORD_KEY
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.spark.lookup.joins import combined
from hudi_engine.spark.write.rows.batch import AlignedBatch
from hudi_engine.spark.write.rows.key_columns import with_keys_of
from hudi_engine.spark.write.rows.stored_rows import rows_of_keys
from hudi_engine.table.lookup.kinds import IndexKind, index_kind
from hudi_engine.table.lookup.unit import DELETE_FLAG, INSERT_FLAG, LEAVES, ORDER
from hudi_engine.table.state import TableState
from hudi_engine.table.write.request import Changes

UPDATE, INSERT, DELETE, UPDATE_UNMATCHED = "update", "insert", "delete", "update by source"
ACTION, OLD_KEY, OLD_PARTITION, OLDER = (
    "__hudi_action",
    "__hudi_old_key",
    "__hudi_old",
    "__hudi_older",
)
CLAUSE = "__hudi_clause"
"""Number of the clause that took a row, among all of its merge."""
CHANGES_KEY = "__hudi_changes_key"
"""Whether a row's values of key or partition columns are others than those of the stored row."""
_MOVED, _ALONE, _KEY = "__hudi_moved", "__hudi_alone", "__hudi_key"

_ZEROS = {"integer": "0", "date": "date'1970-01-01'"}
"""What Avro has as int 0, by Spark's name of the type; see `merge.ordering.is_default`."""
_PLACE, _RESET, _AFTER = "__hudi_place", "__hudi_reset", "__hudi_after"


class RowChanges(Changes):
    """Makes of a batch and the table's rows a batch with flags."""

    def rows(
        self, spark: SparkSession, state: TableState, batch: AlignedBatch, options: Options
    ) -> AlignedBatch:
        """Return the batch with key columns and flags."""
        raise NotImplementedError


Keys = Callable[[TableState, Options], tuple[tuple[DataFrame, ...], pa.Array | None]]


@dataclass(frozen=True)
class Decided(RowChanges):
    """Changes that the caller makes of the table's rows, read again by each attempt of the write.

    Args:
        decide: Gets the table's rows with ``_hoodie_record_key`` and ``_hoodie_partition_path``; returns rows with the data
            columns, what becomes of each (ACTION), the key and partition of the stored row (OLD_KEY, OLD_PARTITION; null for
            a new row) and whether it is older than that by the ordering fields (OLDER). A stored row comes once at most; of
            several new rows with one key one is written, the newest. They may have CLAUSE, for the test.
        inserts: Whether any of them may be new; else they are not sorted by their keys.
        test: Gets all rows as they will be, and which of them stay; returns them so that reading one that must not be fails.
        check: Gets the decided rows with their keys, the stored rows, and whether a key is unique in the whole table; returns
            the decided rows, without those that are left out (`hudi_engine.write.rows.key_check.KeyCheck`).
        assigns: Columns in which a stored row that stays may get another value; None for all.
        keys: Gets a state of the table, and returns the frames that it keeps with the record keys that rows which match, or are
            new, can have; None for any. Files without such a key are not read.
    """

    of_statement: ClassVar[bool] = True

    decide: Callable[[DataFrame], DataFrame]
    inserts: bool = True
    test: Callable[[DataFrame, Column], DataFrame] | None = None
    check: Callable[[DataFrame, DataFrame, bool], DataFrame] | None = None
    assigns: tuple[str, ...] | None = None
    keys: Keys | None = None

    @property
    def assigned(self) -> tuple[str, ...] | None:
        """Columns in which a stored row that stays may get another value."""
        return self.assigns

    def rows(
        self, spark: SparkSession, state: TableState, batch: AlignedBatch, options: Options
    ) -> AlignedBatch:
        """Return the decided rows with keys and flags; raises what the caller does."""
        cached, keys = ((), None) if self.keys is None else self.keys(state, options)
        made = AlignedBatch(
            batch.frame, batch.schema, (RECORD_KEY, PARTITION_PATH, *batch.marks), (*batch.cached, *cached)
        )
        try:
            stored = rows_of_keys(spark, state, options, keys)
            return replace(made, frame=self._rows(stored, state, batch, options))
        except BaseException:
            made.release()
            raise

    def _rows(self, stored: DataFrame, state: TableState, batch: AlignedBatch, options: Options) -> DataFrame:
        index = index_kind(options)
        placed = with_keys_of(state, self.decide(stored), batch.schema, options)
        if self.check is not None:
            placed = self.check(placed, stored, index.is_global)
        if self.inserts:
            placed = _one_a_new_key(placed, state.config, batch, index)
        rows = settled(placed, stored, batch, state.config, index)
        if self.test is not None:
            rows = self.test(rows, ~F.col(DELETE_FLAG))
        return rows.drop(CLAUSE)


def settled(
    placed: DataFrame, stored: DataFrame, batch: AlignedBatch, config: TableConfig, index: IndexKind
) -> DataFrame:
    """Return rows with flags; one that changes its partition leaves the old one and is new in the other.

    An update that would lose against the stored row is left out, so that it is neither written nor counted.

    Args:
        placed: Decided rows, see `Decided`, with the record key and partition path that their values give.
        index: Whether a row moves to the partition of its values.
    """
    action = F.col(ACTION)
    updates = action.isin(UPDATE, UPDATE_UNMATCHED)
    elsewhere = updates & (F.col(PARTITION_PATH) != F.col(OLD_PARTITION))
    if index.is_global and not index.moves_partition:
        placed = _kept_in_place(placed, stored, config, elsewhere)
    moves = index.is_global and index.moves_partition and bool(config.partition_fields)
    elsewhere = elsewhere & F.lit(moves)
    stays_newer = keeps_newer_rows(config) and merge_rule(config).deletes_obey_order
    leaves_newer = (action == UPDATE) & F.lit(merge_rule(config).compares)
    loses = F.col(OLDER) & F.when(elsewhere, leaves_newer).otherwise(updates & F.lit(stays_newer))
    rows = placed.withColumn(_MOVED, elsewhere)
    if moves:
        parts = F.when(loses, F.array().cast("array<boolean>"))
        parts = parts.when(elsewhere, F.array(F.lit(True), F.lit(False))).otherwise(F.array(F.lit(False)))
        rows = rows.select("*", F.explode(parts).alias(LEAVES))
    else:
        rows = rows.where(~F.coalesce(loses, F.lit(False))).withColumn(LEAVES, F.lit(False))
    moved, leaves = F.col(_MOVED), F.col(LEAVES)
    deletes = leaves | (action == DELETE)
    stays = (updates & ~moved) | deletes
    ordering = {name.lower() for name in config.ordering_fields}
    columns = [
        F.when(~deletes, F.col(quoted(name))).alias(name) if name.lower() in ordering else F.col(quoted(name))
        for name in (*batch.schema.names, *batch.marks)
    ]
    return rows.select(
        *columns,
        F.when(stays, F.col(OLD_KEY)).otherwise(F.col(RECORD_KEY)).alias(RECORD_KEY),
        F.when(stays, F.col(OLD_PARTITION)).otherwise(F.col(PARTITION_PATH)).alias(PARTITION_PATH),
        deletes.alias(DELETE_FLAG),
        ((action == INSERT) | (moved & ~leaves)).alias(INSERT_FLAG),
        *(F.col(name) for name in placed.columns if name == CLAUSE),
    )


def _one_a_new_key(
    placed: DataFrame, config: TableConfig, batch: AlignedBatch, index: IndexKind
) -> DataFrame:
    """Return rows of which one is new for a key: the newest, or what rows make together that fill each other's gaps."""
    if not config.record_key_fields:
        return placed
    # a row without a key stays too, to be refused
    is_new = (F.col(ACTION) == INSERT) & F.col(RECORD_KEY).isNotNull()
    placed = placed.withColumn(_ALONE, F.when(~is_new, F.monotonically_increasing_id()))
    if not merge_rule(config).sees_whole_rows:
        key = [RECORD_KEY, _ALONE] if index.is_global else [RECORD_KEY, PARTITION_PATH, _ALONE]
        return newest_of_each_key(placed, key, config).drop(_ALONE)
    own = F.concat(F.lit("\0"), F.col(_ALONE).cast("string"))
    rows = placed.withColumns(
        {
            _KEY: F.col(RECORD_KEY),
            RECORD_KEY: F.coalesce(own, F.col(RECORD_KEY)),
            ORDER: F.monotonically_increasing_id(),
        }
    )
    rows = combined(rows, config, batch.schema, everywhere=index.is_global)
    return rows.withColumn(RECORD_KEY, F.col(_KEY)).drop(_KEY, _ALONE)


def _kept_in_place(placed: DataFrame, stored: DataFrame, config: TableConfig, elsewhere: Column) -> DataFrame:
    """Return rows of which those that would leave their partition have the partition columns that are stored."""
    kept = {name: f"__hudi_kept_{n}" for n, name in enumerate(_partition_columns(stored, config))}
    known = stored.select(
        F.col(RECORD_KEY).alias(OLD_KEY),
        F.col(PARTITION_PATH).alias(OLD_PARTITION),
        *(F.col(quoted(name)).alias(held) for name, held in kept.items()),
    )
    # a key that was inserted twice must not multiply what is decided of it
    known = known.dropDuplicates([OLD_KEY, OLD_PARTITION])
    rows = placed.join(known, [OLD_KEY, OLD_PARTITION], "left")
    columns = {
        name: F.when(elsewhere, F.col(held)).otherwise(F.col(quoted(name))) for name, held in kept.items()
    }
    return rows.withColumns(columns).drop(*kept.values())


def _partition_columns(stored: DataFrame, config: TableConfig) -> list[str]:
    return [each.name for each in config.partition_fields if each.name in stored.columns]


def newest_of_each_key(frame: DataFrame, key: Sequence[str], config: TableConfig) -> DataFrame:
    """Return of several rows with one key the one with the greatest ordering values, of equal ones the last.

    A row that deletes and has no ordering value ends what came before it and is older than all after it, as where
    a batch is combined (Source: Hudi table format, merging).

    Args:
        config: The table's settings; for a table whose rules keep one row whole.
    """
    placed = frame.withColumn(_PLACE, F.monotonically_increasing_id())
    order = [F.col(quoted(name)).desc_nulls_last() for name in config.ordering_fields]
    helpers = [_PLACE]
    kinds = {field.name.lower(): field.dataType.typeName() for field in frame.schema.fields}
    ends = deletes_always(config, kinds, lambda name: F.col(quoted(name)))
    if ends is not None:
        reset = F.max(F.when(ends, F.col(_PLACE))).over(Window.partitionBy(*key))
        after = F.when(F.col(_PLACE) > F.col(_RESET), 2).when(F.col(_PLACE) == F.col(_RESET), 1).otherwise(0)
        placed = placed.withColumn(_RESET, reset).withColumn(_AFTER, after)
        order.insert(0, F.col(_AFTER).desc())
        helpers += [_RESET, _AFTER]
    newest_first = Window.partitionBy(*key).orderBy(*order, F.col(_PLACE).desc())
    ranked = placed.withColumn(_PLACE, F.row_number().over(newest_first))
    return ranked.where(F.col(_PLACE) == 1).drop(*helpers)


def deletes_always(
    config: TableConfig, kinds: Mapping[str, str], value: Callable[[str], Column]
) -> Column | None:
    """Tell which rows delete whatever came before them; None where no row can, or where the last row wins anyway.

    Args:
        kinds: Spark's name for the type of each column of the rows, by the column's name in lower case.
    """
    ordering = config.ordering_fields
    if not ordering:
        return None
    marks = [value(mark) for mark in (IS_DELETED, DELETES) if kinds.get(mark) == "boolean"]
    if config.delete_marker is not None and config.delete_marker[0].lower() in kinds:
        field, _ = config.delete_marker
        marks.append(value(field).cast("string").isin(*config.delete_markers))
    if not marks:
        return None
    deletes, says_nothing = F.lit(False), F.lit(True)
    for mark in marks:
        deletes = deletes | F.coalesce(mark, F.lit(False))
    for name in ordering:
        says_nothing = says_nothing & value(name).isNull()
    zero = _ZEROS.get(kinds.get(ordering[0].lower(), ""))
    if len(ordering) == 1 and zero is not None:
        says_nothing = says_nothing | F.coalesce(value(ordering[0]) == F.expr(zero), F.lit(False))
    return deletes & says_nothing

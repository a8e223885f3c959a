"""The clauses of a MERGE, evaluated over a batch and the table's rows into rows that say what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hudi_engine.config.options import Options
from hudi_engine.config.table_config import TableConfig
from hudi_engine.errors import ConfigError
from hudi_engine.frames.spark_read import snapshot_frame
from hudi_engine.index.joins import combined
from hudi_engine.index.lookup.kinds import IndexKind, index_of
from hudi_engine.index.lookup.unit import ORDER
from hudi_engine.merge.modes.registry import merge_rule
from hudi_engine.schema.fit import quoted
from hudi_engine.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.spelling import no_such_column
from hudi_engine.table_state import TableState
from hudi_engine.write.rows.batch import AlignedBatch
from hudi_engine.write.rows.clause_errors import holds, naming_the_clause
from hudi_engine.write.rows.key_columns import with_keys_of
from hudi_engine.write.rows.match import SOURCE, TARGET
from hudi_engine.write.rows.newest import deletes_always, newest_of_each_key
from hudi_engine.write.rows.replacement import flagged, keyed
from hudi_engine.write.rows.settled import (
    ACTION,
    DELETE,
    INSERT,
    OLD_KEY,
    OLD_PARTITION,
    OLDER,
    UPDATE,
    UPDATE_UNMATCHED,
    OfTheWholeTable,
    settled,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

_KEY, _PARTITION, _FOUND = "__hudi_key", "__hudi_partition", "__hudi_found"


@dataclass(frozen=True)
class MergeClauses(OfTheWholeTable):
    """What becomes of rows that match, and of those on either side that do not.

    A row whose key is stored is matched; it is left alone where ``matched_condition`` does not hold.

    Args:
        on: SQL besides the equality of keys; a stored row that does not fulfil it does not match.
        matched_condition: Only matched rows that fulfil it are updated.
        update_columns: Columns a matched row takes from the batch; None for all.
        update_set: SQL for columns of a matched row, instead of the batch's value.
        skip_matched: Matched rows are left alone.
        not_matched_condition: Only rows of the batch that fulfil it are inserted.
        skip_not_matched: Nothing is inserted.
        by_source: What becomes of stored rows that the batch has no row for: ``delete``, or SQL by column; None for nothing.
        by_source_condition: Only those of them that fulfil it.
        source: Name of the batch's rows in SQL.
        target: Name of the table's rows in SQL.
        called: What messages call a clause, by the names here, where its writer knows it by another.
    """

    on: str | None = None
    matched_condition: str | None = None
    update_columns: tuple[str, ...] | None = None
    update_set: Mapping[str, str] | None = None
    skip_matched: bool = False
    not_matched_condition: str | None = None
    skip_not_matched: bool = False
    by_source: str | Mapping[str, str] | None = None
    by_source_condition: str | None = None
    source: str = SOURCE
    target: str = TARGET
    called: Mapping[str, str] = field(default_factory=dict, compare=False)

    def rows(
        self, spark: SparkSession, state: TableState, batch: AlignedBatch, options: Options
    ) -> AlignedBatch:
        """Return updated rows in their places, deletes, and new rows.

        Raises:
            ConfigError: A clause that Spark cannot resolve, or that sets a key column.
        """
        from pyspark.sql import functions as F

        self._check(state.config, batch)
        index = index_of(state.config, options)
        incoming = self._one_a_key(keyed(state, batch, options), state, index, batch)
        if state.data_schema() is None or not state.timeline.completed_writes:
            with naming_the_clause(self, incoming.alias(self.source)):
                fresh = incoming.alias(self.source).where(self._inserts())
                rows = flagged(fresh, batch, delete=False, insert=True)
            return AlignedBatch(rows, batch.schema, (RECORD_KEY, PARTITION_PATH, *batch.marks))
        stored = snapshot_frame(spark, state, options)
        known = stored.withColumn(_FOUND, F.lit(True))
        with naming_the_clause(self, incoming.alias(self.source).crossJoin(known.alias(self.target))):
            chosen = self._chosen(incoming, known, state.config, batch, index)
        placed = with_keys_of(state, chosen, batch.schema, options)
        rows = settled(placed, stored, batch, state.config, index)
        return AlignedBatch(rows, batch.schema, (RECORD_KEY, PARTITION_PATH, *batch.marks))

    def _one_a_key(
        self, incoming: DataFrame, state: TableState, index: IndexKind, batch: AlignedBatch
    ) -> DataFrame:
        """Return one row a key for clauses to see: the newest, or what rows make together that fill each other's gaps."""
        from pyspark.sql import functions as F

        if merge_rule(state.config).fills:
            in_order = incoming.withColumn(ORDER, F.monotonically_increasing_id())
            return combined(in_order, state.config, batch.schema, everywhere=index.is_global)
        key = [RECORD_KEY] if index.is_global else [RECORD_KEY, PARTITION_PATH]
        return newest_of_each_key(incoming, key, state.config)

    def _check(self, config: TableConfig, batch: AlignedBatch) -> None:
        """Refuse clauses that set an unknown column or the record key, all in one error."""
        known = {name.lower() for name in batch.schema.names}
        keys = {name.partition(".")[0].lower() for name in config.record_key_fields}
        given = {**(self.update_set or {}), **(self.by_source if isinstance(self.by_source, Mapping) else {})}
        named = dict.fromkeys((*given, *(self.update_columns or ())))
        problems = [no_such_column(name, batch.schema.names) for name in named if name.lower() not in known]
        if isinstance(self.by_source, str) and self.by_source != DELETE:
            problems.append(
                f"by_source is {self.by_source!r}; legal values: {DELETE!r}, a mapping of columns to SQL"
            )
        problems += [
            f"column {name!r} is part of the record key and cannot be set"
            for name in given
            if name.lower() in keys
        ]
        if not config.record_key_fields:
            problems.append(f"table {config.name!r} has no record key to match rows by")
        if problems:
            raise ConfigError("; ".join(problems), tuple(problems))

    def _chosen(
        self,
        incoming: DataFrame,
        stored: DataFrame,
        config: TableConfig,
        batch: AlignedBatch,
        index: IndexKind,
    ) -> DataFrame:
        """Return what each clause makes of its rows, with the action and the place of the stored row."""
        from pyspark.sql import functions as F

        source = incoming.withColumnsRenamed({RECORD_KEY: _KEY, PARTITION_PATH: _PARTITION})
        same = f"{self.source}.{_KEY} = {self.target}.{RECORD_KEY}"
        if not index.is_global:
            same += f" and {self.source}.{_PARTITION} = {self.target}.{PARTITION_PATH}"
        if self.on is not None:
            same += f" and ({self.on})"
        how = "left" if self.by_source is None else "full"
        joined = source.alias(self.source).join(stored.alias(self.target), F.expr(same), how)
        action = self._action()
        names = stored.columns
        columns = [
            self._value(name, batch.frame.schema[name].dataType, name in names).alias(name)
            for name in batch.schema.names
        ]
        columns += [
            F.when(action.isin(UPDATE, INSERT), F.col(f"{self.source}.{mark}")).alias(mark)
            for mark in batch.marks
        ]
        return (
            joined.withColumn(ACTION, action)
            .where(F.col(ACTION).isNotNull())
            .select(
                *columns,
                F.col(ACTION),
                F.col(f"{self.target}.{RECORD_KEY}").alias(OLD_KEY),
                F.col(f"{self.target}.{PARTITION_PATH}").alias(OLD_PARTITION),
                self._older(config, batch, names).alias(OLDER),
            )
        )

    def _action(self) -> Column:
        from pyspark.sql import functions as F

        there, came = F.col(_FOUND).isNotNull(), F.col(_KEY).isNotNull()
        updates = F.lit(not self.skip_matched) & holds(self.matched_condition)
        unmatched = DELETE if isinstance(self.by_source, str) else UPDATE_UNMATCHED
        by_source = F.lit(self.by_source is not None) & holds(self.by_source_condition)
        return (
            F.when(there & came & updates, UPDATE)
            .when(~there & self._inserts(), INSERT)
            .when(there & ~came & by_source, unmatched)
        )

    def _inserts(self) -> Column:
        from pyspark.sql import functions as F

        return F.lit(not self.skip_not_matched) & holds(self.not_matched_condition)

    def _older(self, config: TableConfig, batch: AlignedBatch, names: Sequence[str]) -> Column:
        """Tell whether a clause makes a row older than the stored one, by what it sets or else by the batch's row."""
        from pyspark.sql import functions as F

        ordering = config.ordering_fields
        if not ordering:
            return F.lit(False)
        kinds = {field.name.lower(): field.dataType for field in batch.frame.schema.fields}
        everything = replace(self, update_columns=None)

        def new(name: str) -> Column:
            clauses = everything if name in ordering else self
            return clauses._value(name, kinds[name.lower()], name in names)

        stored = [F.col(f"{self.target}.{quoted(name)}").alias(name) for name in ordering]
        older = F.coalesce(
            F.struct(*[new(name).alias(name) for name in ordering]) < F.struct(*stored), F.lit(False)
        )
        always = deletes_always(config, {name: kind.typeName() for name, kind in kinds.items()}, new)
        return older if always is None else older & ~always

    def _value(self, name: str, kind: DataType, is_stored: bool) -> Column:
        """Return a column's value by the clause that takes the row."""
        from pyspark.sql import functions as F

        mine = F.col(f"{self.source}.{quoted(name)}")
        theirs = F.col(f"{self.target}.{quoted(name)}") if is_stored else F.lit(None)
        updated = _lowered(self.update_set).get(name.lower())
        by_source = _lowered(self.by_source if isinstance(self.by_source, Mapping) else None).get(
            name.lower()
        )
        taken = self.update_columns is None or name.lower() in {each.lower() for each in self.update_columns}
        new = F.expr(updated) if updated is not None else mine if taken else theirs
        kept = F.expr(by_source) if by_source is not None else theirs
        action = F.col(ACTION)
        value = F.when(action == UPDATE, new.cast(kind)).when(action == INSERT, mine.cast(kind))
        return value.otherwise(kept.cast(kind))


def _lowered(given: Mapping[str, str] | None) -> dict[str, str]:
    return {name.lower(): str(value) for name, value in (given or {}).items()}

"""The clauses of a MERGE, evaluated over a batch and the table's rows into rows with actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.schema.any_case import AnyCase
from hudi_engine.format.schema.meta_fields import IS_DELETED, META_FIELDS, PARTITION_PATH, RECORD_KEY
from hudi_engine.format.spelling import no_such_column
from hudi_engine.spark.lookup.joins import combined
from hudi_engine.spark.read.expression import expression
from hudi_engine.spark.read.spark_read import snapshot_frame
from hudi_engine.spark.schema.fit import quoted
from hudi_engine.spark.write.rows.batch import AlignedBatch
from hudi_engine.spark.write.rows.casts import assigned_column, fit_column
from hudi_engine.spark.write.rows.key_columns import with_keys_of
from hudi_engine.spark.write.rows.partial_update_nulls import reject_null_overwrite
from hudi_engine.spark.write.rows.replacement import flagged, keyed
from hudi_engine.spark.write.rows.settled import (
    ACTION,
    DELETE,
    INSERT,
    OLD_KEY,
    OLD_PARTITION,
    OLDER,
    UPDATE,
    UPDATE_UNMATCHED,
    Changes,
    deletes_always,
    newest_of_each_key,
    settled,
)
from hudi_engine.spark.write.rows.sides import SOURCE, TARGET, Clause, ClauseRows, ClauseSql, Sides, holds
from hudi_engine.spark.write.rows.stored_rows import stored_rows
from hudi_engine.table.lookup.kinds import IndexKind, index_kind
from hudi_engine.table.lookup.unit import DELETE_FLAG, INSERT_FLAG, ORDER
from hudi_engine.table.state import TableState

_KEY, _PARTITION, _ORDER = "__hudi_key", "__hudi_partition", "__hudi_order_"
_CONDITIONS: Mapping[str, ClauseRows | None] = {
    "on": None,
    "matched_condition": ClauseRows.MATCHED,
    "not_matched_condition": ClauseRows.NEW,
    "by_source_condition": ClauseRows.LEFT,
}
_VALUES: Mapping[str, ClauseRows] = {"update_set": ClauseRows.MATCHED, "by_source": ClauseRows.LEFT}


@dataclass(frozen=True)
class MergeClauses(Changes):
    """What becomes of rows that match, and of those on either side that do not.

    A row whose key is stored is matched; it is left alone where ``matched_condition`` does not hold. Clauses for new rows may
    name columns of the batch only, and those for rows that the batch has none for columns of the table only.

    Args:
        on: SQL besides the equality of keys; a stored row that does not fulfil it does not match.
        matched_condition: Only matched rows that fulfil it are updated.
        update_columns: Columns a matched row takes from the batch; None for all.
        update_set: SQL for columns of a matched row, instead of the batch's value.
        not_matched_condition: Only rows of the batch that fulfil it are inserted.
        by_source: What becomes of stored rows that the batch has no row for: ``delete``, or SQL by column; None for nothing.
        by_source_condition: Only those of them that fulfil it.
        source: Name of the batch's rows in SQL.
        target: Name of the table's rows in SQL.
        called: What messages call a clause, by the names here, where its writer knows it by another.
        test: Gets all rows as they will be, and which of them stay; returns them so that reading one that must not be fails.
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
    test: Callable[[DataFrame, Column], DataFrame] | None = field(default=None, compare=False)

    @property
    def assigned(self) -> tuple[str, ...] | None:
        """Columns in which a stored row that stays may get another value; None for all."""
        if not self.skip_matched and self.update_columns is None:
            return None
        taken = () if self.skip_matched else self.update_columns or ()
        return tuple(dict.fromkeys([*taken, *(name for clause in _VALUES for name in self._values(clause))]))

    def rows(
        self, spark: SparkSession, state: TableState, batch: AlignedBatch, options: Options
    ) -> AlignedBatch:
        """Return updated rows in their places, deletes, and new rows.

        Raises:
            ConfigError: A clause that Spark cannot resolve, that names a side it cannot see, or that sets a key column.
        """
        self._check(state.config, batch)
        index = index_kind(options)
        incoming = self._one_a_key(keyed(state, batch, options), state, index, batch)
        sides = Sides(self.source, self.target)
        plain = incoming.drop(RECORD_KEY, PARTITION_PATH).alias(self.source)
        if state.data_schema() is None or not state.timeline.completed_writes:
            with sides.explained(self._texts, None, plain):
                fresh = incoming.alias(self.source).where(self._inserts())
                rows = flagged(fresh, batch, delete=False, insert=True)
            return AlignedBatch(rows, batch.schema, (RECORD_KEY, PARTITION_PATH, *batch.marks))
        if self.by_source is None:
            batch, stored = stored_rows(spark, state, batch, options)
        else:
            stored = snapshot_frame(spark, state, options)
        try:
            with sides.explained(self._texts, stored.alias(self.target), plain):
                chosen = self._chosen(incoming, stored, state.config, batch, index)
            placed = with_keys_of(state, chosen, batch.schema, options)
            rows = settled(placed, stored, batch, state.config, index)
            if self.test is not None:
                rows = self.test(rows, ~F.col(DELETE_FLAG))
        except BaseException:
            batch.release()
            raise
        return replace(batch, frame=rows, carried=(RECORD_KEY, PARTITION_PATH, *batch.marks))

    def refuse_unknown(self, rows: DataFrame) -> None:
        """Refuse clauses that are no SQL or name unknown columns, while there is no table yet.

        Args:
            rows: Rows with the columns that the table is going to have.

        Raises:
            ConfigError: Such a clause.
        """
        problems = self._unknown_names(rows.columns)
        if problems:
            raise ConfigError("; ".join(problems), tuple(problems))
        known = {name.lower() for name in rows.columns}
        more = {each: F.lit(None).cast("string") for each in META_FIELDS if each not in known}
        if IS_DELETED not in known:
            more[IS_DELETED] = F.lit(None).cast("boolean")
        both = rows.withColumns(more)
        sides = Sides(self.source, self.target)
        sides.refuse_unknown(self._texts(), both.alias(self.target), both.alias(self.source))

    def _unknown_names(self, columns: Sequence[str]) -> list[str]:
        """Say which clauses are about columns that are none."""
        known = {name.lower() for name in columns}
        named = [(clause, name) for clause in _VALUES for name in self._values(clause)]
        named += [("update_columns", name) for name in self.update_columns or ()]
        return [
            f"{self._called(clause)} names {name!r}: {no_such_column(name, columns)}"
            for clause, name in named
            if name.lower() not in known
        ]

    def _one_a_key(
        self, incoming: DataFrame, state: TableState, index: IndexKind, batch: AlignedBatch
    ) -> DataFrame:
        """Return one row a key for clauses to see: the newest, or what rows make together that fill each other's gaps."""
        if merge_rule(state.config).sees_whole_rows:
            in_order = incoming.withColumn(ORDER, F.monotonically_increasing_id())
            return combined(in_order, state.config, batch.schema, everywhere=index.is_global)
        key = [RECORD_KEY] if index.is_global else [RECORD_KEY, PARTITION_PATH]
        return newest_of_each_key(incoming, key, state.config)

    def _check(self, config: TableConfig, batch: AlignedBatch) -> None:
        """Refuse clauses that set an unknown column or the record key, all in one error."""
        keys = {name.partition(".")[0].lower() for name in config.record_key_fields}
        given = [(clause, name) for clause in _VALUES for name in self._values(clause)]
        problems = self._unknown_names(batch.schema.names)
        if isinstance(self.by_source, str) and self.by_source != DELETE:
            problems.append(
                f"{self._called('by_source')} is {self.by_source!r}; legal values: {DELETE!r}, a mapping of columns to SQL"
            )
        problems += [
            f"{self._called(clause)} names {name!r}: column {name!r} is part of the record key and cannot be set"
            for clause, name in given
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
        source = incoming.withColumnsRenamed({RECORD_KEY: _KEY, PARTITION_PATH: _PARTITION})
        same = f"{self.source}.{_KEY} = {self.target}.{RECORD_KEY}"
        if not index.is_global:
            same += f" and {self.source}.{_PARTITION} = {self.target}.{PARTITION_PATH}"
        if self.on is not None:
            same += f" and ({self.on})"
        clauses = self._clauses(batch, stored.columns, config)
        ordering = [_order(name) for name in config.ordering_fields]
        rows, new = Sides(self.source, self.target).taken(
            stored.alias(self.target),
            source.alias(self.source),
            F.expr(same),
            clauses,
            [*batch.schema.names, *batch.marks, *ordering],
        )
        kinds = batch.frame.schema
        return rows.select(
            *(
                new[name].cast(kinds[name].dataType).alias(name)
                for name in (*batch.schema.names, *batch.marks)
            ),
            F.col(ACTION),
            F.col(f"{self.target}.{RECORD_KEY}").alias(OLD_KEY),
            F.col(f"{self.target}.{PARTITION_PATH}").alias(OLD_PARTITION),
            self._older(config, batch, new).alias(OLDER),
        )

    def _clauses(self, batch: AlignedBatch, stored: Sequence[str], config: TableConfig) -> list[Clause]:
        """Return the clauses; each has a value for every column of the batch, and one more for each ordering field.

        The latter is the value by which a row is compared: the batch's where the clause does not take it.
        """
        everything = replace(self, update_columns=None)
        kinds = AnyCase((field.name, field.dataType) for field in batch.frame.schema.fields)

        def value_of(name: str, rows: ClauseRows, assigned: set[str]) -> Column:
            value = self._value(name, rows, name in stored)
            if name.lower() in assigned and name in stored:
                return reject_null_overwrite(value, F.col(f"{self.target}.{quoted(name)}"), name, config)
            return value

        def clause(rows: ClauseRows, action: str, condition: str | None) -> Clause:
            assigned = {name.lower() for name in self._assigned(rows)}
            values = {name: value_of(name, rows, assigned) for name in (*batch.schema.names, *batch.marks)}
            values |= {
                _order(name): everything._value(name, rows, name in stored) for name in config.ordering_fields
            }

            def fit(_: DataFrame, value: StructField, name: str) -> Column:
                column = name.removeprefix(_ORDER)
                bring = assigned_column if column.lower() in assigned else fit_column
                return bring(value.name, value.dataType, kinds[column], column)

            return Clause(rows, action, _sql(condition), values, fit)

        found = []
        if not self.skip_matched:
            found.append(clause(ClauseRows.MATCHED, UPDATE, self.matched_condition))
        if not self.skip_not_matched:
            found.append(clause(ClauseRows.NEW, INSERT, self.not_matched_condition))
        if self.by_source is not None:
            action = DELETE if isinstance(self.by_source, str) else UPDATE_UNMATCHED
            found.append(clause(ClauseRows.LEFT, action, self.by_source_condition))
        return found

    def _inserts(self) -> Column:
        return F.lit(not self.skip_not_matched) & holds(_sql(self.not_matched_condition))

    def _older(self, config: TableConfig, batch: AlignedBatch, values: Mapping[str, Column]) -> Column:
        """Tell whether a clause makes a row older than the stored one, by what it sets or else by the batch's row."""
        ordering = config.ordering_fields
        if not ordering:
            return F.lit(False)
        kinds = {field.name.lower(): field.dataType.typeName() for field in batch.frame.schema.fields}
        lowered = {name.lower(): value for name, value in values.items()}

        def new(name: str) -> Column:
            return lowered[(_order(name) if name in ordering else name).lower()]

        stored = [F.col(f"{self.target}.{quoted(name)}").alias(name) for name in ordering]
        older = F.coalesce(
            F.struct(*[new(name).alias(name) for name in ordering]) < F.struct(*stored), F.lit(False)
        )
        always = deletes_always(config, kinds, new)
        return older if always is None else older & ~always

    def _value(self, name: str, rows: ClauseRows, is_stored: bool) -> Column:
        """Return a column's value in rows of a kind."""
        mine = F.col(f"{self.source}.{quoted(name)}")
        theirs = F.col(f"{self.target}.{quoted(name)}") if is_stored else F.lit(None)
        if rows is ClauseRows.NEW:
            return mine
        given = self._assigned(rows)
        text = {each.lower(): text for each, text in given.items()}.get(name.lower())
        if text is not None:
            return expression(text)
        if rows is ClauseRows.LEFT:
            return theirs
        taken = self.update_columns is None or name.lower() in {each.lower() for each in self.update_columns}
        return mine if taken else theirs

    def _assigned(self, rows: ClauseRows) -> dict[str, str]:
        """Return the SQL for columns of rows of a kind."""
        clause = {each: name for name, each in _VALUES.items()}.get(rows)
        return {} if clause is None else self._values(clause)

    def _values(self, clause: str) -> dict[str, str]:
        """Return the SQL that a clause has for columns."""
        given = getattr(self, clause)
        return {name: str(text) for name, text in given.items()} if isinstance(given, Mapping) else {}

    def _called(self, clause: str) -> str:
        return self.called.get(clause, clause)

    def _texts(self) -> list[ClauseSql]:
        """Return each condition and value, for messages."""
        conditions = [(clause, rows, getattr(self, clause)) for clause, rows in _CONDITIONS.items()]
        found = [
            ClauseSql(rows, f"{self._called(clause)} {text!r}", partial(_holding, text))
            for clause, rows, text in conditions
            if text is not None
        ]
        return found + [
            ClauseSql(
                rows, f"{self._called(clause)} sets {name} to {text!r}, which", partial(expression, text)
            )
            for clause, rows in _VALUES.items()
            for name, text in self._values(clause).items()
        ]


def _order(name: str) -> str:
    return f"{_ORDER}{name}"


def _sql(condition: str | None) -> Column | None:
    return None if condition is None else expression(condition)


def _holding(condition: str) -> Column:
    return holds(_sql(condition))


_FOUND = "__hudi_found"


def flag_unmatched(
    spark: SparkSession,
    state: TableState,
    batch: AlignedBatch,
    condition: str,
    options: Options,
    *,
    everywhere: bool,
) -> AlignedBatch:
    """Add a flag to rows that have no stored row with their key for which ``condition`` holds.

    Args:
        everywhere: Whether keys count in all partitions (global index), not only in the row's own.
    """
    if state.data_schema() is None or not state.timeline.completed_writes:
        return AlignedBatch(batch.frame.withColumn(INSERT_FLAG, F.lit(True)), batch.schema, batch.carried)
    names = batch.schema.names
    source = with_keys_of(state, batch.frame, batch.schema, options)
    source = source.withColumnsRenamed({RECORD_KEY: _KEY, PARTITION_PATH: _PARTITION})
    batch, stored = stored_rows(spark, state, batch, options)
    same = f"{SOURCE}.{_KEY} = {TARGET}.{RECORD_KEY}"
    if not everywhere:
        same += f" and {SOURCE}.{_PARTITION} = {TARGET}.{PARTITION_PATH}"
    sides = Sides(SOURCE, TARGET)
    text = ClauseSql(None, f"the match condition {condition!r}", partial(expression, condition))
    plain = source.drop(_KEY, _PARTITION).alias(SOURCE)
    try:
        with sides.explained(lambda: [text], stored.alias(TARGET), plain):
            target = stored.alias(TARGET).withColumn(_FOUND, F.lit(True))
            joined = source.alias(SOURCE).join(target, F.expr(same) & expression(condition), "left")
            flagged = joined.select(
                *[F.col(f"{SOURCE}.`{name.replace('`', '``')}`") for name in (*names, *batch.marks)],
                F.col(_FOUND).isNull().alias(INSERT_FLAG),
            )
    except BaseException:
        batch.release()
        raise
    return replace(batch, frame=flagged)

"""The clauses of a MERGE, evaluated over a batch and the table's rows into rows with actions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
from hudi_engine.format.schema.meta_fields import (
    IS_DELETED,
    META_FIELDS,
    PARTITION_PATH,
    RECORD_KEY,
    with_meta_columns,
)
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.format.spelling import no_such_column
from hudi_engine.spark.lookup.joins import combined
from hudi_engine.spark.read.expression import expression
from hudi_engine.spark.read.spark_read import snapshot_frame
from hudi_engine.spark.schema.spark_types import arrow_to_spark
from hudi_engine.spark.write.rows.batch import AlignedBatch
from hudi_engine.spark.write.rows.casts import assigned_column, fit_column
from hudi_engine.spark.write.rows.key_columns import with_keys_of
from hudi_engine.spark.write.rows.partial_update_nulls import reject_null_overwrite
from hudi_engine.spark.write.rows.replacement import keyed
from hudi_engine.spark.write.rows.settled import (
    ACTION,
    DELETE,
    INSERT,
    OLD_KEY,
    OLD_PARTITION,
    OLDER,
    UPDATE,
    UPDATE_UNMATCHED,
    RowChanges,
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
NOTHING = "do_nothing"
ACTIONS: Mapping[ClauseRows, Mapping[str, str]] = {
    ClauseRows.MATCHED: {UPDATE: UPDATE, DELETE: DELETE, NOTHING: NOTHING},
    ClauseRows.NEW: {INSERT: INSERT, NOTHING: NOTHING},
    ClauseRows.LEFT: {UPDATE: UPDATE_UNMATCHED, DELETE: DELETE, NOTHING: NOTHING},
}
"""What may become of the rows of each kind, and the action that it is."""


@dataclass(frozen=True)
class When:
    """One branch of a merge.

    Args:
        rows: The rows that it is about; of several branches about the same rows the first that holds takes a row.
        action: ``update``, ``delete``, ``insert``, or ``do_nothing`` for a row that is left as it is.
        condition: SQL that they fulfil; None for all of them.
        columns: Columns that take the batch's value in a matched or new row; None for all.
        excluded: Columns that do not.
        values: SQL for columns, instead of that value.
        called: What messages call the condition, and the values.
    """

    rows: ClauseRows
    action: str
    condition: str | None = None
    columns: tuple[str, ...] | None = None
    excluded: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    called: tuple[str, str] = ("condition", "values")

    @property
    def assigned(self) -> tuple[str, ...] | None:
        """Columns in which a stored row that stays may get another value; None for all."""
        if self.action != UPDATE:
            return ()
        taken = () if self.rows is ClauseRows.LEFT else self.columns
        return None if taken is None else (*taken, *self.values)

    @property
    def becomes(self) -> str:
        """What becomes of its rows, as the write calls it."""
        return ACTIONS[self.rows][self.action]

    def problems(self, known: Collection[str]) -> Iterator[str]:
        """Yield what is wrong with it by itself.

        Args:
            known: Columns of the table and of the batch.
        """
        condition, values = self.called
        legal = ACTIONS[self.rows]
        if self.action not in legal:
            yield f"{values} is {self.action!r}; legal values {self.rows.value}: {', '.join(map(repr, legal))}"
        lowered = {name.lower() for name in known}
        listed = (*(self.columns or ()), *self.excluded)
        for called, names in ((values, self.values), ("update_columns", listed)):
            for name in names:
                if name.lower() not in lowered:
                    yield f"{called} names {name!r}: {no_such_column(name, known)}"

    def texts(self) -> Iterator[ClauseSql]:
        """Yield its condition and its values, for messages."""
        condition, values = self.called
        if self.condition is not None:
            yield ClauseSql(self.rows, f"{condition} {self.condition!r}", partial(_holding, self.condition))
        for name, text in self.values.items():
            what = f"{values} sets {name} to {text!r}, which"
            yield ClauseSql(self.rows, what, partial(expression, text))

    def value(self, name: str, sides: Sides, *, is_stored: bool) -> Column:
        """Return the value of a column in its rows.

        Args:
            is_stored: Whether the table has the column.
        """
        mine = F.col(f"{sides.source}.{quoted(name)}")
        stored = is_stored and self.rows is not ClauseRows.NEW
        theirs = F.col(f"{sides.target}.{quoted(name)}") if stored else F.lit(None)
        text = AnyCase(self.values.items()).get(name)
        if text is not None:
            return expression(text)
        taken = self.columns is None or name.lower() in {each.lower() for each in self.columns}
        taken = taken and name.lower() not in {each.lower() for each in self.excluded}
        return mine if taken and self.rows is not ClauseRows.LEFT else theirs


@dataclass(frozen=True)
class MergeClauses(RowChanges):
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
        when: Branches about rows of a kind, of which there may be several, instead of the one of the arguments above.
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
    when: tuple[When, ...] = ()
    source: str = SOURCE
    target: str = TARGET
    called: Mapping[str, str] = field(default_factory=dict, compare=False)
    test: Callable[[DataFrame, Column], DataFrame] | None = field(default=None, compare=False)

    @property
    def branches(self) -> tuple[When, ...]:
        """The branches, in the order in which they are tried."""
        given = {each.rows for each in self.when}
        found = []
        if ClauseRows.MATCHED not in given and not self.skip_matched:
            called = self._called("matched_condition"), self._called("update_set")
            values = _texts_of(self.update_set)
            found.append(
                When(
                    ClauseRows.MATCHED,
                    UPDATE,
                    self.matched_condition,
                    self.update_columns,
                    values=values,
                    called=called,
                )
            )
        if ClauseRows.NEW not in given and not self.skip_not_matched:
            called = self._called("not_matched_condition"), ""
            found.append(When(ClauseRows.NEW, INSERT, self.not_matched_condition, called=called))
        if ClauseRows.LEFT not in given and self.by_source is not None:
            called = self._called("by_source_condition"), self._called("by_source")
            action = self.by_source if isinstance(self.by_source, str) else UPDATE
            values = _texts_of(self.by_source)
            found.append(
                When(ClauseRows.LEFT, action, self.by_source_condition, values=values, called=called)
            )
        return (*found, *self.when)

    @property
    def left_action(self) -> str | None:
        """What becomes of stored rows that the batch has no row for: deleted where some are; None where all stay."""
        actions = {each.action for each in self.branches if each.rows is ClauseRows.LEFT} - {NOTHING}
        return DELETE if DELETE in actions else next(iter(actions), None)

    @property
    def assigned(self) -> tuple[str, ...] | None:
        """Columns in which a stored row that stays may get another value; None for all."""
        found: list[str] = []
        for each in self.branches:
            if each.assigned is None:
                return None
            found += each.assigned
        return tuple(dict.fromkeys(found))

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
        is_new = state.data_schema() is None or not state.timeline.completed_writes
        branches = [each for each in self.branches if not is_new or each.rows is ClauseRows.NEW]
        if is_new:
            stored = spark.createDataFrame([], arrow_to_spark(with_meta_columns(batch.schema)))
        elif any(each.rows is ClauseRows.LEFT for each in branches):
            stored = snapshot_frame(spark, state, options)
        else:
            batch, stored = stored_rows(spark, state, batch, options)
        target = None if is_new else stored.alias(self.target)
        try:
            with sides.explained(self._texts, target, plain):
                chosen = self._chosen(incoming, stored, branches, state.config, batch, index)
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
        problems = self._problems(rows.columns)
        if problems:
            raise ConfigError("; ".join(problems), tuple(problems))
        known = {name.lower() for name in rows.columns}
        more = {each: F.lit(None).cast("string") for each in META_FIELDS if each not in known}
        if IS_DELETED not in known:
            more[IS_DELETED] = F.lit(None).cast("boolean")
        both = rows.withColumns(more)
        sides = Sides(self.source, self.target)
        sides.refuse_unknown(self._texts(), both.alias(self.target), both.alias(self.source))

    def _problems(self, columns: Sequence[str]) -> list[str]:
        """Say which branches are none, or are about columns that are none."""
        return list(dict.fromkeys(found for each in self.branches for found in each.problems(columns)))

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
        # a new row in another partition than the one that was looked in may be there already
        paths = {each.name.lower() for each in config.partition_fields}
        problems = self._problems(batch.schema.names)
        problems += [
            f"{each.called[1]} names {name!r}: column {name!r} is part of the record key and cannot be set"
            for each in self.branches
            for name in each.values
            if name.lower() in keys
        ]
        problems += [
            f"{each.called[1]} names {name!r}: a new row has the partition columns of the batch"
            for each in self.branches
            for name in (*each.values, *each.excluded)
            if each.rows is ClauseRows.NEW and name.lower() in paths
        ]
        if not config.record_key_fields:
            problems.append(f"table {config.name!r} has no record key to match rows by")
        if problems:
            raise ConfigError("; ".join(problems), tuple(problems))

    def _chosen(
        self,
        incoming: DataFrame,
        stored: DataFrame,
        branches: Sequence[When],
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
        clauses = [self._clause(each, batch, stored.columns, config) for each in branches]
        ordering = [_order(name) for name in config.ordering_fields]
        rows, new = Sides(self.source, self.target).taken(
            stored.alias(self.target),
            source.alias(self.source),
            F.expr(same),
            clauses,
            [*batch.schema.names, *batch.marks, *ordering],
        )
        kinds = batch.frame.schema
        return rows.where(F.col(ACTION) != NOTHING).select(
            *(
                new[name].cast(kinds[name].dataType).alias(name)
                for name in (*batch.schema.names, *batch.marks)
            ),
            F.col(ACTION),
            F.col(f"{self.target}.{RECORD_KEY}").alias(OLD_KEY),
            F.col(f"{self.target}.{PARTITION_PATH}").alias(OLD_PARTITION),
            self._older(config, batch, new).alias(OLDER),
        )

    def _clause(
        self, branch: When, batch: AlignedBatch, stored: Sequence[str], config: TableConfig
    ) -> Clause:
        """Return a branch with a value for every column of the batch, and one more for each ordering field.

        The latter is the value by which a row is compared: the batch's where the branch does not take it.
        """
        sides, whole = Sides(self.source, self.target), replace(branch, columns=None, excluded=())
        assigned = {name.lower() for name in branch.values}
        kinds = AnyCase((field.name, field.dataType) for field in batch.frame.schema.fields)

        def value_of(name: str) -> Column:
            value = branch.value(name, sides, is_stored=name in stored)
            if name.lower() in assigned and name in stored and branch.rows is not ClauseRows.NEW:
                return reject_null_overwrite(value, F.col(f"{self.target}.{quoted(name)}"), name, config)
            return value

        values = {name: value_of(name) for name in (*batch.schema.names, *batch.marks)}
        values |= {
            _order(name): whole.value(name, sides, is_stored=name in stored)
            for name in config.ordering_fields
        }

        def fit(_: DataFrame, value: StructField, name: str) -> Column:
            column = name.removeprefix(_ORDER)
            bring = assigned_column if column.lower() in assigned else fit_column
            return bring(value.name, value.dataType, kinds[column], column)

        return Clause(branch.rows, branch.becomes, _sql(branch.condition), values, fit)

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

    def _called(self, clause: str) -> str:
        return self.called.get(clause, clause)

    def _texts(self) -> list[ClauseSql]:
        """Return each condition and value, for messages."""
        on = []
        if self.on is not None:
            on.append(ClauseSql(None, f"{self._called('on')} {self.on!r}", partial(_holding, self.on)))
        return on + [text for each in self.branches for text in each.texts()]


def _texts_of(values: object) -> dict[str, str]:
    return {name: str(text) for name, text in values.items()} if isinstance(values, Mapping) else {}


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

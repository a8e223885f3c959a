"""Rows that go and rows that come, as one batch: what delete and insert in one instant are made of.

Two flags of every row: it deletes the stored rows of its key in its partition, or it is new whatever is stored.
Writing such a batch is an upsert whose look-up is already done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from typing import ClassVar

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from hudi_engine.errors import DataError, HudiError
from hudi_engine.format.config.options import Options
from hudi_engine.format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.spark.jvm.frames import under_name
from hudi_engine.spark.read.expression import expression
from hudi_engine.spark.read.reason import reason_in
from hudi_engine.spark.read.spark_read import snapshot_frame
from hudi_engine.spark.write.rows.arguments import resolving
from hudi_engine.spark.write.rows.batch import AlignedBatch
from hudi_engine.spark.write.rows.key_columns import with_keys_of
from hudi_engine.spark.write.rows.settled import RowChanges
from hudi_engine.spark.write.rows.sides import SOURCE, TARGET
from hudi_engine.table.lookup.unit import DELETE_FLAG, INSERT_FLAG
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.conflict import Replaced

OUTSIDE = "rows to write that are not among those that the write replaces"
"""Begins the message about rows that the next run of the same write would not take out again."""


@dataclass(frozen=True)
class EventWindow:
    """A window of time over one column.

    Args:
        column: A column of the table: timestamp, date, or text that reads as one.
        start: First moment; without a zone it is UTC.
        usual_cause: Why rows are outside of it most times, for the message about such rows.
    """

    column: str
    start: datetime
    end: datetime
    usual_cause: str = ""

    def condition(self, frame: DataFrame) -> Column:
        """Return the condition on a frame that has the column; a date counts as its midnight in UTC."""
        column = F.col(quoted(self.column))
        kind = _type_name(frame, self.column)
        if kind == "date":
            return (column >= F.lit(_first_date(self.start))) & (column < F.lit(_first_date(self.end)))
        moment = column if kind == "timestamp" else column.cast("timestamp_ltz")
        return (moment >= F.lit(with_zone(self.start))) & (moment < F.lit(with_zone(self.end)))

    def only_within(self, frame: DataFrame) -> DataFrame:
        """Return the same rows; reading one outside of the window fails as a write that replaces the window does."""
        failed = F.raise_error(F.lit(f"{OUTSIDE}: {self.text}")).cast("boolean")
        inside = F.coalesce(self.condition(frame), F.lit(False))
        return frame.where(F.when(inside, F.lit(True)).otherwise(failed))

    def cut(self, start: datetime, end: datetime) -> EventWindow:
        """Return the part of the window that another time has, which may be empty.

        Args:
            start: First moment of that time; without a zone it is UTC.
        """
        first = max(with_zone(self.start), with_zone(start))
        return replace(self, start=first, end=max(first, min(with_zone(self.end), with_zone(end))))

    @property
    def text(self) -> str:
        """The window in words, and why rows are outside of it."""
        cause = f" (the usual cause: {self.usual_cause})" if self.usual_cause else ""
        return f"{self.column} from {self.start} up to {self.end}{cause}"


@contextmanager
def outside_rows() -> Iterator[None]:
    """Raise DataError for rows that Spark found not to be among those that a write replaces."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, HudiError) and OUTSIDE in str(error):
            reason = reason_in(str(error)[str(error).index(OUTSIDE) :])
            raise DataError(
                f"the data has {reason}. The same write would not take them out again: filter them out, or widen what is replaced"
            ) from error
        raise


@dataclass(frozen=True)
class Replacement(RowChanges):
    """Which stored rows go when others come; several of these narrow each other down.

    Args:
        keys: Columns; rows go whose values in them are those of a row that comes (null is like null).
        where: SQL over the table's columns, which may be named as DBT_INTERNAL_DEST.column; with ``keys`` also over columns of
            the rows that come, as DBT_INTERNAL_SOURCE.column.
        brings_back: Stored rows that do not go, but have the key of one that does, are inserted again: a file loses its rows by
            key. To find them all keys are read.
        named: Parts of the table's name in ``where`` in place of DBT_INTERNAL_DEST.
    """

    keys: tuple[str, ...] = ()
    where: str | None = None
    window: EventWindow | None = None
    brings_back: bool = False
    named: tuple[str, ...] = (TARGET,)

    @property
    def single_rows(self) -> bool:
        """Whether no other row of the key of a row that goes may go with it."""
        return not self.brings_back

    def for_repeated_keys(self) -> Replacement:
        """Return the replacement for a table with keys that are stored more than once."""
        return replace(self, brings_back=True)

    @property
    def replaced(self) -> Replaced:
        """The window if that is all; other rows have no bounds, nor do those that are written again."""
        if self.window is None or self.brings_back:
            return Replaced()
        return Replaced.within(self.window.column, self.window.start, self.window.end)

    @property
    def by_key(self) -> bool:
        """Whether rows go by their keys."""
        return bool(self.keys)

    reads_all: ClassVar[bool] = False  # `replaced` has what matters of other partitions

    def rows(
        self, spark: SparkSession, state: TableState, batch: AlignedBatch, options: Options
    ) -> AlignedBatch:
        """Return rows that delete, and the rows that come.

        Raises:
            ConfigError: A column or condition that Spark cannot resolve.
        """
        incoming = keyed(state, batch, options)
        cached: tuple[DataFrame, ...] = ()
        if self.keys:
            # They are read twice, and have to be the same rows.
            incoming = incoming.persist()
            cached = (incoming,)
        made = AlignedBatch(incoming, batch.schema, (RECORD_KEY, PARTITION_PATH, *batch.marks), cached)
        try:
            return replace(made, frame=self._both(spark, state, batch, options, incoming))
        except BaseException:
            made.release()
            raise

    def _both(
        self,
        spark: SparkSession,
        state: TableState,
        batch: AlignedBatch,
        options: Options,
        incoming: DataFrame,
    ) -> DataFrame:
        """Return rows that delete, and those that come."""
        with resolving(
            "the rows to replace" + (f" where {self.where}" if self.where else "") + " cannot be resolved",
            f"Use columns of the table, as {TARGET}.column or column"
            + (f", and of the data as {SOURCE}.column" if self.keys else ""),
        ):
            arriving = incoming if self.keys else self._only_within(incoming)
            both = flagged(arriving, batch, delete=False, insert=True)
            if state.data_schema() is not None and state.timeline.completed_writes:
                stored = snapshot_frame(spark, state, options)
                nothing = [
                    F.lit(None).cast(batch.frame.schema[name].dataType).alias(name)
                    for name in (*batch.schema.names, *batch.marks)
                ]
                going = self._going(stored, incoming)
                deletes = going.select(*nothing, F.col(RECORD_KEY), F.col(PARTITION_PATH))
                both = both.unionByName(flagged(deletes, batch, delete=True, insert=False))
                if self.brings_back:
                    kept = _with_key_of(going, self._staying(stored, incoming), nothing)
                    both = both.unionByName(flagged(kept, batch, delete=False, insert=True))
        return both

    def _going(self, stored: DataFrame, incoming: DataFrame) -> DataFrame:
        if self.window is not None:
            stored = stored.where(self.window.condition(stored))
        stored = under_name(stored, self.named)
        if not self.keys:
            return stored.where(expression(self.where)) if self.where is not None else stored
        return self._with_keys(stored, incoming, "left_semi")

    def _staying(self, stored: DataFrame, incoming: DataFrame) -> DataFrame:
        """Return the stored rows that `_going` leaves out."""
        goes = F.lit(True) if self.window is None else self.window.condition(stored)
        if self.keys:
            inside, outside = (
                stored.where(F.coalesce(goes, F.lit(False)) == F.lit(each)) for each in (True, False)
            )
            others = self._with_keys(inside.alias(TARGET), incoming, "left_anti")
            return others.unionByName(outside)
        goes = goes if self.where is None else goes & expression(self.where)
        return under_name(stored, self.named).where(~F.coalesce(goes, F.lit(False)))

    def _with_keys(self, stored: DataFrame, incoming: DataFrame, how: str) -> DataFrame:
        """Join stored rows with those that come and have their keys, where the condition holds.

        The rows that come are one struct under their name, so that a column without a qualifier is the table's.
        """
        # apart from the struct, which is only read where the condition names it
        keys = {name: f"__hudi_key_{number}" for number, name in enumerate(self.keys)}
        came = incoming.select(
            *(F.col(quoted(name)).alias(key) for name, key in keys.items()), F.struct("*").alias(SOURCE)
        )
        condition = F.lit(True) if self.where is None else expression(self.where)
        for name, key in keys.items():
            condition = condition & F.col(f"{TARGET}.{quoted(name)}").eqNullSafe(F.col(key))
        return stored.join(came, condition, how)

    def _only_within(self, incoming: DataFrame) -> DataFrame:
        """Fail where a row that comes is not one that the same write would take out again."""
        conditions = [] if self.where is None else [expression(self.where)]
        if self.window is not None:
            conditions.append(self.window.condition(incoming))
        within = F.lit(True)
        for each in conditions:
            within = within & F.coalesce(each, F.lit(False))
        failed = F.raise_error(F.lit(f"{OUTSIDE}: {self._text()}")).cast("string")
        place = F.when(within, F.col(PARTITION_PATH)).otherwise(failed)
        return under_name(incoming, self.named).withColumn(PARTITION_PATH, place)

    def _text(self) -> str:
        parts = [] if self.where is None else [self.where]
        if self.window is not None:
            parts.append(self.window.text)
        return " and ".join(parts)


def _with_key_of(going: DataFrame, staying: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """Return those of the rows that stay whose key, in their partition, is also that of a row that goes."""
    key, place = "__hudi_going_key", "__hudi_going_partition"
    keys = going.select(F.col(RECORD_KEY).alias(key), F.col(PARTITION_PATH).alias(place)).distinct()
    same = (F.col(RECORD_KEY) == F.col(key)) & (F.col(PARTITION_PATH) == F.col(place))
    found = staying.join(keys, same, "left_semi")
    named = {name.lower(): name for name in found.columns}
    kinds = found.select(*columns).schema.fields
    return found.select(
        *(
            F.col(quoted(named[field.name.lower()])).cast(field.dataType).alias(field.name)
            if field.name.lower() in named
            else empty
            for field, empty in zip(kinds, columns, strict=True)
        ),
        F.col(RECORD_KEY),
        F.col(PARTITION_PATH),
    )


def keyed(state: TableState, batch: AlignedBatch, options: Options) -> DataFrame:
    """Return the rows of a batch with record key (null where the table generates keys) and partition path."""
    frame = with_keys_of(state, batch.frame, batch.schema, options)
    if RECORD_KEY not in frame.columns:
        frame = frame.withColumn(RECORD_KEY, F.lit(None).cast("string"))
    return frame


def flagged(frame: DataFrame, batch: AlignedBatch, *, delete: bool, insert: bool) -> DataFrame:
    """Return key columns, data columns and the two flags."""
    names: Sequence[str] = (*batch.schema.names, *batch.marks, RECORD_KEY, PARTITION_PATH)
    columns = [F.col(quoted(name)) for name in names]
    return frame.select(*columns, F.lit(delete).alias(DELETE_FLAG), F.lit(insert).alias(INSERT_FLAG))


def _type_name(frame: DataFrame, column: str) -> str:
    return str(frame.select(quoted(column)).schema.fields[0].dataType.typeName())


def _first_date(moment: datetime) -> date:
    """Return the first date whose midnight is not before a moment."""
    aware = with_zone(moment).astimezone(timezone.utc)
    whole = aware.time() == datetime.min.time()
    return aware.date() if whole else aware.date() + timedelta(days=1)


def with_zone(moment: datetime) -> datetime:
    """Return a moment with its zone, which is UTC where it names none."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)

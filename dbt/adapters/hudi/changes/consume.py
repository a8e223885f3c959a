"""Change rows in a keyed model: deletes delete, rows before updates are dropped, and the columns of changes are not stored."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_engine.format.config.declared.table_options import TableOptions
from hudi_engine.format.config.declared.write_options import IndexOptions
from hudi_engine.format.config.enums import MergeMode
from hudi_engine.format.config.table_config import payload_merge_mode
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.format.schema.meta_fields import DELETES, IS_DELETED
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.spark.write.rows.casts import exact_marks
from hudi_engine.table.changes.window import BEFORE, CHANGE_TYPE, CHANGE_TYPES, COMMITTED, DELETE
from hudi_engine.table.lookup.kinds import MOVES
from hudi_engine.table.write.fit import DELETE_MARKS
from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from dbt.adapters.hudi.model.merge import MERGING
from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.rows.deletes import SETTLED, any_of, boolean_marks
from dbt.adapters.hudi.run import Feed

_RANK = "__dbt_hudi_rank"


def consumed(plan: ModelPlan, frame: DataFrame, feed: Feed, *, rebuilds: bool) -> DataFrame:
    """Return the rows to upsert, deletes marked; other frames and other models' as they are.

    Of several rows with a key those of the newest commit count, and a row that is stored wins over a delete of that commit. Net
    changes are the state at the end of the window, so there it wins over any delete: its key has moved to another partition,
    or the deletes of a file group show a later commit than their own.

    An unknown change type fails the write. Without commit times the write takes the newest row by the ordering fields, and
    fails where they do not decide (`rows.deletes.ordered_deletes`); in windows of every commit's changes this function does.
    """
    names = spellings(consumed_columns(plan, frame.columns))
    if CHANGE_TYPE not in names:
        return frame
    kind, committed = names[CHANGE_TYPE], names.get(COMMITTED)
    frame = exact_marks(frame.where(F.coalesce(_checked(kind), F.lit("insert")) != BEFORE))
    deleted = any_of([_column(kind) == DELETE, *boolean_marks(frame)])
    helpers = [name for name in names.values() if name.lower() not in DELETE_MARKS]
    helpers += [IS_DELETED] if IS_DELETED in frame.columns else []
    if committed is None and not feed.is_net and not feed.brings_steps:
        return frame.withColumn(DELETES, deleted).drop(*helpers)
    order = [deleted.asc()] if committed is None else [deleted.asc(), _column(committed).desc()]
    if not feed.is_net:
        order.reverse()
    keys = _key_columns(plan)
    places = Window.partitionBy(*map(_column, keys))
    if feed.brings_steps and committed is None:
        rank = _checked_rank(keys, places, deleted, _ordering(plan, frame.columns))
    else:
        rank = F.rank().over(places.orderBy(*order))
    newest = frame.withColumn(_RANK, rank).where(f"{_RANK} = 1").drop(_RANK)
    if rebuilds:
        return newest.where(~deleted).drop(*helpers, DELETES)
    settled = {} if _folds_partitions(plan) else SETTLED
    return newest.withColumn(DELETES, deleted.alias(DELETES, metadata=settled)).drop(*helpers)


def untimed_deletes(frame: DataFrame, since: str) -> DataFrame:
    """Return net changes whose deletes have the time of their begin, so that no row of the window is older.

    They come with the newest commit of their file group, which may be younger than a row that has their key elsewhere.
    """
    time = F.when(F.col(CHANGE_TYPE) == DELETE, F.lit(since)).otherwise(F.col(COMMITTED))
    return frame.withColumn(COMMITTED, time)


def consumed_columns(plan: ModelPlan, columns: Iterable[str], *, takes_changes: bool = True) -> list[str]:
    """Return which columns of a model's query are consumed, and are not stored in its table.

    A table that has ``_hoodie_is_deleted`` as a column keeps it.
    """
    names = spellings(columns)
    if not plan.table.record_key or plan.merge.strategy not in MERGING:
        return []
    of_changes = (CHANGE_TYPE, COMMITTED) if takes_changes and CHANGE_TYPE in names else ()
    return [names[each] for each in (*of_changes, *DELETE_MARKS) if each in names]


def _key_columns(plan: ModelPlan) -> list[str]:
    """Return what makes a row the same one: the key, and where it lies unless keys are unique in the whole table."""
    kind = plan.write_options.get(IndexOptions.TYPE.key, "").upper()
    return [*plan.table.record_key, *(() if kind in MOVES else plan.table.partition_columns)]


def _folds_partitions(plan: ModelPlan) -> bool:
    """Whether several values of a partition column may lie in one partition, as times of a day do."""
    return any(":" in column for column in plan.table.partition_by) or any(
        "keygen" in option for option in plan.options
    )


def _ordering(plan: ModelPlan, columns: Iterable[str]) -> list[Column]:
    """Return what orders rows of a key by themselves; nothing where it is no column of the query, or does not count."""
    fields, names = plan.table.precombine_field, spellings(columns)
    mode = plan.given_options.get(TableOptions.MERGE_MODE.key)
    if mode is None and TableOptions.PAYLOAD_CLASS.key in plan.given_options:
        mode = payload_merge_mode(plan.given_options[TableOptions.PAYLOAD_CLASS.key])
    if mode == MergeMode.COMMIT_TIME_ORDERING or any(name.split(".")[0] not in names for name in fields):
        return []
    return [_column(name) for name in fields]


def _checked_rank(keys: list[str], places: WindowSpec, deleted: Column, ordering: list[Column]) -> Column:
    """Return 1, and fail on rows of one key without a newest one."""
    key = F.concat_ws(", ", *(_column(name).cast("string") for name in keys))
    problem = F.concat(
        F.lit(f"hudi_changes with mode='all': the query has several rows with {', '.join(keys)} '"),
        key,
        F.lit(
            f"', and no column {COMMITTED} that tells which is the newest; select {COMMITTED} too, or make it one row a key"
        ),
    )
    several = F.count(F.lit(1)).over(places) > 1
    first = places.orderBy(*(each.desc_nulls_last() for each in ordering or [F.lit(1)]))
    # the rows up to the first one, and its equals
    tied = (F.rank().over(first) == 1) & (F.count(F.lit(1)).over(first) > 1)
    undecided = several & (tied | F.max(deleted).over(places))
    return F.when(undecided, F.raise_error(problem)).otherwise(F.lit(1))


def _checked(kind: str) -> Column:
    legal = ", ".join(CHANGE_TYPES)
    problem = F.concat(F.lit(f"{CHANGE_TYPE} is '"), _column(kind), F.lit(f"'; legal values: {legal}"))
    given = _column(kind)
    return F.when(given.isNull() | given.cast("string").isin(*CHANGE_TYPES), given).otherwise(
        F.raise_error(problem)
    )


def _column(name: str) -> Column:
    """Return a column by its name, in which dots reach into structs."""
    return F.col(".".join(map(quoted, name.split("."))))

"""MERGE INTO a keyed Hudi table: the rows that its WHEN clauses change, add and take out, for one commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import or_

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_engine import HudiTable
from hudi_engine.errors import ConfigError, SchemaError, StatementError
from hudi_engine.format.config.options import Options, resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.keygen.partition_path import DEFAULT_PARTITION_VALUE
from hudi_engine.format.keygen.text import EMPTY_PLACEHOLDER, NULL_PLACEHOLDER
from hudi_engine.format.merge.modes.registry import COMMIT_TIME, EVENT_TIME, merge_rule
from hudi_engine.format.schema.any_case import AnyCase, spellings
from hudi_engine.format.schema.meta_fields import DELETES, IS_DELETED, PARTITION_PATH, RECORD_KEY, meta_fields
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.jvm.frames import under_name
from hudi_engine.spark.read.reason import reason_of
from hudi_engine.spark.schema.spark_types import arrow_to_spark, spark_to_arrow
from hudi_engine.spark.sql.statement import Statement, Target
from hudi_engine.spark.write.rows import settled
from hudi_engine.spark.write.rows.batch import fetch_little
from hudi_engine.spark.write.rows.casts import check_cast, check_fields, exact_cast, fit_to_table
from hudi_engine.spark.write.rows.key_check import KeyCheck
from hudi_engine.spark.write.rows.partial_update_nulls import reject_null_overwrite
from hudi_engine.spark.write.rows.sides import Clause, ClauseRows, Sides
from hudi_engine.spark.write.rows.stored_rows import can_skip, few_rows, kept
from hudi_engine.table.data_skipping.predicate import has_plain_keys, keys_of_values
from hudi_engine.table.lookup.kinds import index_kind
from hudi_engine.table.state import TableState
from hudi_engine.table.write.define.table_options import with_table_options
from hudi_engine.table.write.operation import UPSERT

_SETTLED = T.StructType(
    [T.StructField(name, T.StringType()) for name in (settled.ACTION, settled.OLD_KEY, settled.OLD_PARTITION)]
    + [T.StructField(name, T.BooleanType()) for name in (settled.OLDER, settled.CHANGES_KEY)]
    + [T.StructField(settled.CLAUSE, T.IntegerType())]
)
_SUGGESTED = re.compile(r" Did you mean one of the following\? \[[^\]]*\]\.?")
# The kind of a partition field of which many values make one partition.
_TIMES = "timestamp"
_OF_UPSERTS = [(ClauseRows.MATCHED, "UpdateStarAction"), (ClauseRows.NEW, "InsertStarAction")]
_WHOLE_NUMBERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
# Texts that make the same key or partition as null or another of them.
_BLANK = ("", NULL_PLACEHOLDER, EMPTY_PLACEHOLDER, DEFAULT_PARTITION_VALUE)


class Merge:
    """What a MERGE makes of the table's rows, for `HudiTable.merge_rows`."""

    def __init__(self, statement: Statement, target: Target, table: HudiTable) -> None:
        plan, config = statement.plan, table.config
        if not config.record_key_fields:
            raise StatementError(
                f"MERGE INTO {target.label} is refused: the table has no record key; rebuild it with unique_key"
            )
        _check_form(plan, target)
        self._statement, self._target, self._config = statement, target, config
        self._options = resolve_options(statement.warehouse.options_at(target.base))
        self._index = index_kind(with_table_options(config, self._options, UPSERT.name.value))
        self._partition_fields = () if self._index.is_global else config.partition_fields
        names = [*config.record_key_fields, *(each.name for each in self._partition_fields)]
        self._identity = tuple(dict.fromkeys(names))
        self._source: tuple[DataFrame, str] | None = None
        self._colliding: Column | None = None
        self._kinds: dict[str, T.DataType] = {}

    def keys(self, state: TableState, options: Options) -> tuple[tuple[DataFrame, ...], pa.Array | None]:
        """Return the source where it is kept for `decide`, and the record keys that its rows make, by one Spark job.

        Returns:
            None for the keys where rows of others may match or be new, or the table has no index by which files are skipped.
        """
        source, name = _source(self._statement)
        self._source, schema = (source, name), state.data_schema()
        names = None if schema is None else self._key_columns(schema, source, name)
        if schema is None or names is None or not can_skip(state, source, options):
            return (), None
        cached = kept(source)
        values = few_rows(source.select(*map(quoted, names)), options)
        if values is None:
            return cached, None
        rows = list(zip(*(column.to_pylist() for column in values.columns), strict=True))
        try:
            keys = keys_of_values(rows, schema, self._config, options)
        except (pa.ArrowInvalid, OverflowError):  # no value of the table's column
            return cached, None
        return cached, pc.unique(keys.drop_null())

    def _key_columns(self, schema: pa.Schema, source: DataFrame, name: str) -> list[str] | None:
        """Return the columns of the source that have the key of each row which matches or is new; None where none have."""
        plan, exact, fields = self._statement.plan, spellings(source.columns), self._config.record_key_fields
        compared = compared_columns(plan, [name], self._target.own_name) or set()
        is_over_keys = compared >= {each.lower() for each in fields} and all(each in exact for each in fields)
        if (
            not is_over_keys
            or plan.notMatchedBySourceActions().size()
            or not has_plain_keys(schema, self._config)
        ):
            return None
        stored = AnyCase((each.name, each.dataType) for each in arrow_to_spark(schema).fields)
        names = [exact[each] for each in fields]
        given = [source.schema[each].dataType for each in names]
        return names if all(map(_same_key, map(stored.get, fields), given)) else None

    def upserted(self, columns: T.StructType, test: Callable[[DataFrame], DataFrame]) -> pa.Table | None:
        """Return the rows of a MERGE that is an upsert, so that it need not join them with the table's; None for any other.

        ON compares the key and the partition columns, ``UPDATE SET *`` and ``INSERT *`` have no conditions, and the source is
        small, with a key of its own in each row.

        Args:
            columns: The table's columns.
            test: Gets the source's rows in these columns; returns them so that reading one that must not be written fails.
        """
        plan, config = self._statement.plan, self._config
        kinds = AnyCase((field.name, field.dataType) for field in columns.fields)
        key = {each.lower() for each in self._identity}
        actions = _actions(plan)
        if (
            [(rows, plans.kind(action)) for rows, action in actions] != _OF_UPSERTS
            or any(plans.option(action.condition()) is not None for _, action in actions)
            or merge_rule(config) not in (COMMIT_TIME, EVENT_TIME)
            or config.delete_marker is not None
            or not {IS_DELETED, DELETES}.isdisjoint(map(str.lower, columns.names))
            or (self._index.is_global and config.partition_fields)
            or not has_plain_keys(spark_to_arrow(columns), config)
        ):
            return None
        # Spark resolves the source last, as any other MERGE does that again
        source, name = _source(self._statement)
        known = AnyCase((field.name, field) for field in source.schema.fields)
        if (
            any(each not in known for each in columns.names)
            or compared_columns(plan, [name], self._target.own_name) != key
            or not all(
                _is_plain(kinds[each]) and _same_key(kinds[each], known[each].dataType) for each in key
            )
        ):
            return None
        try:
            values = [_as_stored(columns, source, known[each], each).alias(each) for each in columns.names]
            rows = fetch_little(test(source.select(*values)), self._options)
        except (PySparkException, SchemaError):
            return None  # the row is named where it is joined
        return rows if rows is not None and self._is_upsert_of(rows) else None

    def _is_upsert_of(self, rows: pa.Table) -> bool:
        """Tell whether each row has a key of its own that no stored row with other values has, and can be ordered."""
        exact = spellings(rows.column_names)
        identity = rows.select([exact[each] for each in self._identity])
        ordered = [exact[each] for each in self._config.ordering_fields if each in exact]
        texts = [each for each in identity.columns if pa.types.is_string(each.type)]
        return (
            0 < rows.num_rows == identity.group_by(identity.column_names).aggregate([]).num_rows
            and not any(rows[each].null_count for each in (*identity.column_names, *ordered))
            and not any(pc.any(pc.is_in(each, pa.array(_BLANK))).as_py() for each in texts)
        )

    def decide(self, stored: DataFrame) -> DataFrame:
        """Join the table's rows with the source, read again, and let the first clause that holds take each row."""
        statement, target, plan = self._statement, self._target, self._statement.plan
        source, source_name = self._source or _source(statement)
        schema = _own_columns(stored, self._config)
        sides = Sides(source_name, target.own_name[-1], target.own_name)
        rows = stored.withColumnsRenamed({RECORD_KEY: settled.OLD_KEY, PARTITION_PATH: settled.OLD_PARTITION})
        rows = rows.select(*map(quoted, schema.names), settled.OLD_KEY, settled.OLD_PARTITION)
        own = under_name(rows, sides.named)
        try:
            taken, values = sides.taken(
                own,
                source,
                plans.column(statement.session, plan.mergeCondition()),
                _clauses(statement, schema, sides, self._config),
                schema.names,
            )
        except PySparkException as error:
            # Spark's suggestions name columns that the join adds
            reason = _SUGGESTED.sub("", reason_of(error))
            raise ConfigError(
                f"MERGE INTO {target.label} cannot be resolved: {reason}. Call columns of the table {sides.target}.column, and of "
                f"the source {source_name}.column; WHEN NOT MATCHED may name "
                "the source only, WHEN NOT MATCHED BY SOURCE the table only"
            ) from error
        self._kinds = {field.name.lower(): field.dataType for field in schema.fields}
        self._colliding = self._colliding_rows(sides, source.schema)
        changed = taken.select(
            *(values[name].alias(name) for name in schema.names),
            *map(F.col, (settled.ACTION, settled.OLD_KEY, settled.OLD_PARTITION, settled.CLAUSE)),
            _older(values, sides, self._config.ordering_fields).alias(settled.OLDER),
            self._changes_key(values, sides).alias(settled.CHANGES_KEY),
        )
        return fit_to_table(changed, T.StructType([*schema.fields, *_SETTLED.fields]))

    def check(self, placed: DataFrame, stored: DataFrame, everywhere: bool) -> DataFrame:
        """Fail rows that the write would take for those of other keys."""
        advice = (
            f"compare {', '.join(self._identity)} in ON, by <=> where they may be null, the source's cast to the table's types; of "
            "a time compare the part that its key or partition has, such as the day or the millisecond (unix_millis)"
        )
        check = KeyCheck(f"MERGE INTO {self._target.label}", self._identity, advice, self._colliding)
        return check.checked(placed, stored, everywhere)

    def _changes_key(self, values: Mapping[str, Column], sides: Sides) -> Column:
        """Tell whether a row may have other values of key or partition columns than the stored one."""
        exact = spellings(values)
        changes = F.lit(False)
        for each in self._identity:
            if each not in exact:
                return F.lit(True)
            changes = changes | ~values[exact[each]].eqNullSafe(_of(sides.target, exact[each]))
        return changes

    def _colliding_rows(self, sides: Sides, source: T.StructType) -> Column | None:
        """Return which stored rows may have the key of an inserted row that matches none; None for no row."""
        # where ON compares key and partition by =, and the inserted row takes those, only nulls and texts that mean null collide
        plan = self._statement.plan
        if not plan.notMatchedActions().size():
            return None
        compared = compared_columns(plan, [sides.source], sides.named)
        key = {each.lower() for each in self._config.record_key_fields}
        known = {field.name.lower(): field.dataType for field in source.fields}
        dated = {each.name.lower() for each in self._partition_fields if each.kind == _TIMES}
        plain = {
            each.lower()
            for each in self._identity
            if each.lower() not in dated - key
            and _same_key(self._kinds.get(each.lower()), known.get(each.lower()))
        }
        if compared is None or not key <= compared <= plain:
            return F.lit(True)
        blank = sorted(compared - key if len(key) == 1 else compared)
        return reduce(or_, map(self._is_blank, blank)) if blank else None

    def _is_blank(self, column: str) -> Column:
        value = F.col(quoted(column))
        is_text = isinstance(self._kinds[column], T.StringType)
        return value.isNull() | value.isin(*_BLANK) if is_text else value.isNull()


def _is_plain(kind: T.DataType) -> bool:
    return isinstance(kind, _WHOLE_NUMBERS) or kind == T.StringType()


def _same_key(stored: T.DataType | None, given: T.DataType | None) -> bool:
    """Tell whether values of two types that = finds equal, and no others, make one key."""
    if isinstance(stored, (T.TimestampType, T.BinaryType)):
        return False
    return stored is not None and (
        stored == given or (isinstance(stored, _WHOLE_NUMBERS) and isinstance(given, _WHOLE_NUMBERS))
    )


def compared_columns(plan: plans.JavaPlan, source: Sequence[str], target: Sequence[str]) -> set[str] | None:
    """Return the lower-case columns that an ON compares and new rows take from the source; None for any other ON."""
    found = set()
    for each in _conjuncts(plan.mergeCondition()):
        if plans.kind(each) != "EqualTo":
            return None
        sides = [_parts(each.left()), _parts(each.right())]
        is_pair = any(_is_of(one, source) and _is_of(other, target) for one, other in (sides, sides[::-1]))
        if not is_pair or sides[0][-1] != sides[1][-1]:
            return None
        found.add(sides[0][-1])
    takes = all(_takes(action, found, source) for action in plans.items(plan.notMatchedActions()))
    return found if takes else None


def _takes(action: plans.JavaPlan, columns: Collection[str], source: Sequence[str]) -> bool:
    """Tell whether rows that are inserted have the source's values in columns."""
    if plans.kind(action) == "InsertStarAction":
        return True
    taken = set()
    for item in plans.items(action.assignments()):
        value, name = _parts(item.value()), plans.texts(item.key().nameParts())[-1].lower()
        if value[-1:] == [name] and (len(value) == 1 or _is_of(value, source)):
            taken.add(name)
    return taken >= {*columns}


def all_new(statement: Statement) -> DataFrame | None:
    """Return the source of a MERGE that inserts all of it, ON FALSE, as dbt-spark writes it without a key; None for any other."""
    plan = statement.plan
    actions = [*plans.items(plan.notMatchedActions()), *plans.items(plan.notMatchedBySourceActions())]
    if (
        [plans.kind(each) for each in actions] != ["InsertStarAction"]
        or plans.option(actions[0].condition()) is not None
        or not any(
            plans.kind(each) == "Literal" and str(each.toString()) == "false"
            for each in _conjuncts(plan.mergeCondition())
        )
    ):
        return None
    return _source(statement)[0]


def _parts(expression: plans.JavaPlan) -> list[str]:
    """Return the parts of a column's name in lower case, none for another expression."""
    if plans.kind(expression) != "UnresolvedAttribute":
        return []
    return [each.lower() for each in plans.texts(expression.nameParts())]


def _is_of(parts: Sequence[str], side: Sequence[str]) -> bool:
    """Tell whether a name is that of a column of one side, and not of a field in a struct."""
    qualifier = [*parts[:-1]]
    return bool(qualifier) and qualifier == [each.lower() for each in side][-len(qualifier) :]


def _conjuncts(condition: plans.JavaPlan) -> Iterator[plans.JavaPlan]:
    if plans.kind(condition) == "And":
        yield from _conjuncts(condition.left())
        yield from _conjuncts(condition.right())
    else:
        yield condition


def _own_columns(stored: DataFrame, config: TableConfig) -> T.StructType:
    """Return a table's columns as its rows have them, for another writer may have added some meanwhile."""
    hidden = meta_fields(operation=config.keeps_operations)
    return T.StructType([field for field in stored.schema.fields if field.name not in hidden])


def columns_given(plan: plans.JavaPlan, columns: Sequence[str]) -> dict[str, Column]:
    """Return the columns that clauses of a MERGE give values, each with the rows whose clause does."""
    found: dict[str, list[int]] = {}
    for number, (rows, action) in enumerate(_actions(plan)):
        given = columns
        if plans.kind(action) == "DeleteAction":
            given = []
        elif rows is not ClauseRows.NEW and plans.kind(action) != "UpdateStarAction":
            given = [plans.texts(item.key().nameParts())[-1] for item in plans.items(action.assignments())]
        for name in given:
            found.setdefault(name.lower(), []).append(number)
    return {name: F.col(settled.CLAUSE).isin(numbers) for name, numbers in found.items()}


def columns_updated(plan: plans.JavaPlan) -> list[str] | None:
    """Return the columns of stored rows that clauses of a MERGE give values; None for all of them."""
    updates = [action for rows, action in _actions(plan) if rows is not ClauseRows.NEW]
    if any(plans.kind(action) == "UpdateStarAction" for action in updates):
        return None
    given = [
        item
        for each in updates
        if plans.kind(each) != "DeleteAction"
        for item in plans.items(each.assignments())
    ]
    return list(dict.fromkeys(plans.texts(item.key().nameParts())[-1] for item in given))


def _older(new: dict[str, Column], sides: Sides, ordering: Sequence[str]) -> Column:
    """Tell whether a row's values are older than the stored ones by the ordering fields that are columns."""
    names = {name.lower(): name for name in new}
    known = [names[each.lower()] for each in ordering if each.lower() in names]
    if not known:
        return F.lit(False)
    stored = F.struct(*(F.col(f"{quoted(sides.target)}.{quoted(name)}").alias(name) for name in known))
    return F.coalesce(F.struct(*(new[name].alias(name) for name in known)) < stored, F.lit(False))


def _source(statement: Statement) -> tuple[DataFrame, str]:
    node = statement.plan.sourceTable()
    frame = plans.frame(statement.session, node)
    if plans.kind(node) == "SubqueryAlias":
        return frame, str(node.alias())
    parts, _ = plans.target_parts(node)
    return frame, parts[-1]


def _actions(plan: plans.JavaPlan) -> list[tuple[ClauseRows, plans.JavaPlan]]:
    """Return the WHEN clauses; those about one kind of rows in their order, of which the first that holds takes a row."""
    kinds = (
        (ClauseRows.MATCHED, plan.matchedActions()),
        (ClauseRows.NEW, plan.notMatchedActions()),
        (ClauseRows.LEFT, plan.notMatchedBySourceActions()),
    )
    return [(rows, action) for rows, actions in kinds for action in plans.items(actions)]


def _clauses(statement: Statement, schema: T.StructType, sides: Sides, config: TableConfig) -> list[Clause]:
    return [
        _clause(statement, rows, action, schema, sides, config) for rows, action in _actions(statement.plan)
    ]


def _of(side: str, column: str) -> Column:
    return F.col(f"{quoted(side)}.{quoted(column)}")


def _check_form(plan: plans.JavaPlan, target: Target) -> None:
    """Refuse clauses that would not do what they mean."""
    if plans.has_flag(plan, "withSchemaEvolution"):
        raise StatementError(
            f"MERGE WITH SCHEMA EVOLUTION INTO {target.label} is refused: add the columns with ALTER TABLE ... ADD COLUMNS "
            "first, or let an incremental model with on_schema_change add them"
        )
    for _, action in _actions(plan):
        if plans.hasattr_java(action, "assignments"):
            target.set_columns(action.assignments())
    source = plan.sourceTable()
    if plans.kind(source) != "SubqueryAlias" and not plans.hasattr_java(source, "multipartIdentifier"):
        raise StatementError(
            f"MERGE INTO {target.label}: the query behind USING has no name by which ON and the clauses could call its columns; "
            "give it one, as in USING (select ...) AS s"
        )


def _clause(
    statement: Statement,
    rows: ClauseRows,
    action: plans.JavaPlan,
    schema: T.StructType,
    sides: Sides,
    config: TableConfig,
) -> Clause:
    """Return the rows of a clause and the columns they take; columns that it leaves out keep their value, or are null."""
    condition, columns = plans.option(action.condition()), schema.names
    which = None if condition is None else plans.column(statement.session, condition)
    kind, fit = plans.kind(action), partial(_as_stored, schema)
    nothing = dict.fromkeys(columns, F.lit(None))
    kept = nothing if rows is ClauseRows.NEW else {column: _of(sides.target, column) for column in columns}
    if kind == "DeleteAction":
        return Clause(rows, settled.DELETE, which, kept, fit)
    taken = {ClauseRows.NEW: settled.INSERT, ClauseRows.LEFT: settled.UPDATE_UNMATCHED}.get(
        rows, settled.UPDATE
    )
    if kind in ("UpdateStarAction", "InsertStarAction"):
        return Clause(rows, taken, which, {column: _of(sides.source, column) for column in columns}, fit)
    given = {
        plans.texts(item.key().nameParts())[-1].lower(): plans.column(statement.session, item.value())
        for item in plans.items(action.assignments())
    }
    unknown = set(given) - {column.lower() for column in columns}
    if unknown:
        raise StatementError(
            f"the table has no column {', '.join(sorted(unknown))}; its columns: {', '.join(columns)}"
        )
    values = {column: given.get(column.lower(), kept[column]) for column in columns}
    if rows is not ClauseRows.NEW:
        values |= {
            column: reject_null_overwrite(values[column], kept[column], column, config)
            for column in columns
            if column.lower() in given
        }
    return Clause(rows, taken, which, values, fit)


def _as_stored(schema: T.StructType, rows: DataFrame, value: T.StructField, name: str) -> Column:
    """Return the value that a clause gives a column in its type; one that does not fit fails the statement."""
    column = schema[name]
    if value.dataType == column.dataType:
        return F.col(value.name)
    check_fields(value.dataType, column.dataType, name)
    check_cast(rows, value, column)
    return exact_cast(value.name, value.dataType, column.dataType, name)

"""How an incremental run changes the table."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.declared.write_options import WriteOptions
from hudi_engine.format.spelling import did_you_mean, nearest
from hudi_engine.spark.write.rows.clauses import MergeClauses

from dbt.adapters.hudi.model.clauses import CONFIGS, read_clauses
from dbt.adapters.hudi.model.known_configs import CLAUSES
from dbt.adapters.hudi.model.reading import Problems, boolean, names
from dbt.adapters.hudi.model.table import ModelTable, RawConfig

# Each strategy with the write operation it comes down to.
STRATEGIES: Mapping[str, str] = {
    "upsert": "upsert",
    "merge": "upsert",
    "insert": "insert",
    "append": "insert",
    "bulk_insert": "bulk_insert",
    "insert_overwrite": "insert_overwrite",
    "insert_overwrite_table": "insert_overwrite_table",
    "insert_new": "insert_new",
    "delete+insert": "delete+insert",
    "microbatch": "microbatch",
    "replace_where": "replace_where",
    "delete": "delete",
}
ON_SCHEMA_CHANGE = ("ignore", "append_new_columns", "sync_all_columns", "fail")
_REFUSED: Mapping[str, str] = {
    "insert_by_period": "use microbatch with event_time, begin and batch_size",
}
_WITHOUT_KEY: Mapping[str, str] = {
    "upsert": "insert, which adds all rows",
    "insert_new": "insert, which adds all rows",
    "delete": "replace_where with incremental_predicates over a query without rows",
}
MERGING = ("upsert", "merge")
ADDING = ("insert", "append", "bulk_insert", "insert_new")
# With a precombine_field, of rows with one key the newest is kept in the first build too.
ONE_ROW_A_KEY = (*MERGING, "insert_new")
WITH_PREDICATES = ("upsert", "delete+insert", "replace_where")
_NOT_OF_HUDI = ("insert_new", "delete+insert", "microbatch", "replace_where")
INTERNAL_PACKAGES = ("dbt", "dbt_spark", "dbt_hudi")
_MACRO = re.compile(r"get_incremental_(\w+)_sql")
# dbt's own macros of these names look for one of the project that begins so
_DISPATCHED = re.compile(
    r"(?:hudi|spark|default)__get_incremental_(append|default|delete_insert|insert_overwrite|merge|microbatch)_sql"
)
_OPERATION = "hoodie.datasource.write.operation"
_SKIP_UNCHANGED = EngineOptions.SKIP_UNCHANGED.key
_SKIP_KNOWN = WriteOptions.INSERT_DROP_DUPLICATES.key


@dataclass(frozen=True)
class BatchWindow:
    """The window of time of one batch of a microbatch model.

    Args:
        column: The model's ``event_time``.
        start: First moment; None when dbt runs no batch.
    """

    column: str
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True)
class MergeConfig:
    """An incremental run.

    Args:
        strategy: Name of the incremental strategy, also one of the user's own.
        operation: The write operation of an incremental run; None for a strategy of the user's own, which is a macro.
        update_columns: Columns a matched row takes from the batch; None means all.
        exclude_columns: Columns a matched row keeps; None means none.
        skip_unchanged: Rows that equal what is stored are left out.
        delete_by: Columns whose values select the rows that are deleted (delete+insert).
        clauses: Clauses of a merge beyond update and insert; None for none.
        window: Column and bounds of the batch (microbatch); the bounds are None outside of dbt's run of a batch.
    """

    strategy: str
    operation: str | None = None
    update_columns: tuple[str, ...] | None = None
    exclude_columns: tuple[str, ...] | None = None
    predicates: tuple[str, ...] = ()
    on_schema_change: str = ON_SCHEMA_CHANGE[0]
    skip_unchanged: bool = False
    delete_by: tuple[str, ...] = ()
    window: BatchWindow | None = None
    clauses: MergeClauses | None = None

    def options(self) -> dict[str, str]:
        """Options of a write."""
        chosen = {_SKIP_UNCHANGED: self.skip_unchanged, _SKIP_KNOWN: self.operation == "insert_new"}
        return {option: "true" for option, wanted in chosen.items() if wanted}

    def columns_to_update(self, columns: tuple[str, ...]) -> list[str] | None:
        """Columns of a matched row that change, out of the table's; None when all do."""
        if self.update_columns is not None:
            return list(self.update_columns)
        if self.exclude_columns is not None:
            kept = {column.lower() for column in self.exclude_columns}
            return [column for column in columns if column.lower() not in kept]
        return None

    @property
    def condition(self) -> str | None:
        """All predicates as one condition, each in brackets so that an OR inside keeps its meaning."""
        # a comment may end a predicate, but not what comes behind it
        ended = (f"{each}\n" if "--" in each else each for each in self.predicates)
        return " AND ".join(f"({each})" for each in ended) or None

    @property
    def row_clauses(self) -> MergeClauses | None:
        """All SQL of later runs about stored rows and the model's, as clauses.

        None without such SQL, and if a later run may add the columns that it names.
        """
        grows = self.on_schema_change in ("append_new_columns", "sync_all_columns")
        if self.operation is None or grows or (self.clauses is None and not self.predicates):
            return None
        return replace(self.clauses or MergeClauses(called=CONFIGS), on=self.condition)


def own_strategies(macros: Iterable[Any], project: str = "") -> frozenset[str]:
    """Return the strategies that a project, or a package it uses, has macros for; `default` is the one of models without one."""
    found: set[str] = set()
    for macro in macros:
        is_projects = macro.package_name == project
        named = _MACRO.fullmatch(macro.name) or (_DISPATCHED.fullmatch(macro.name) if is_projects else None)
        if named is None or macro.package_name in INTERNAL_PACKAGES:
            continue
        if is_projects or named[1] != "default":
            found.update((named[1], named[1].replace("delete_insert", "delete+insert")))
    return frozenset(found)


def lacks_macro(strategy: object, own: Collection[str]) -> bool:
    """Whether a strategy is neither ours nor nearly so: one of the project's own, whose macro dbt does not find.

    The node itself fails then, as in dbt; the other nodes run.

    Args:
        strategy: The incremental strategy of a node, None for the default.
    """
    name = str(strategy or "default")
    if name == "default" or name in STRATEGIES or name in _REFUSED or name in own:
        return False
    return nearest(name, STRATEGIES) is None


def read_merge(raw: RawConfig, table: ModelTable, own_strategies: Collection[str] = ()) -> MergeConfig:
    """Return the incremental run of a model; collects every contradiction.

    Other materializations inherit these configs from their folder and do not use them, so their problems do not count.
    """
    is_incremental = raw.config.get("materialized") == "incremental"
    problems = raw.problems if is_incremental else Problems()
    own = own_strategies if is_incremental else ()
    strategy = _strategy(_configured_strategy(raw, problems), table, own, problems)
    operation = _operation(strategy, table, own)
    if operation == "insert_overwrite" and (
        raw.config.get("incremental_predicates") or raw.config.get("predicates")
    ):
        operation = "replace_where"
    update = names("merge_update_columns", raw.config.get("merge_update_columns"), problems)
    exclude = names("merge_exclude_columns", raw.config.get("merge_exclude_columns"), problems)
    predicates = _predicates(raw.config, problems)
    clauses = read_clauses(raw.config, problems)
    skip = bool(boolean("skip_unchanged", raw.config.get("skip_unchanged"), problems, False))
    if raw.config.get("merge_update_columns") == []:
        problems.add(
            "merge_update_columns is [], which dbt takes for all columns; leave it out to update all of them, or set "
            "skip_matched_step: true to update no stored row"
        )
    if update and exclude:
        problems.add("merge_update_columns and merge_exclude_columns are both set; give one of them")
    if operation == "replace_where" and not predicates:
        problems.add(
            "incremental_strategy 'replace_where' needs incremental_predicates, conditions over the table's columns that say "
            "which rows are replaced; set them, or use insert_overwrite with partition_by"
        )
    if operation not in (None, "upsert"):
        keyless = " without unique_key" if strategy in MERGING else ""
        for key, value in (
            ("merge_update_columns", update),
            ("merge_exclude_columns", exclude),
            ("incremental_predicates", predicates),
            ("skip_unchanged", skip),
            *((key, clauses and raw.config.get(key)) for key in CLAUSES),
        ):
            if value and not (value is predicates and operation in WITH_PREDICATES):
                others = "replace_where, or " if value is predicates else ""
                problems.add(
                    f"{key} is set, but incremental_strategy {strategy!r}{keyless} does not merge rows; leave it out, or use "
                    f"{others}upsert with a unique_key"
                )
    return MergeConfig(
        strategy=strategy,
        operation=operation,
        update_columns=(update or None) if is_incremental else None,
        exclude_columns=(exclude or None) if is_incremental else None,
        predicates=predicates if is_incremental else (),
        on_schema_change=_on_schema_change(raw.config, problems),
        skip_unchanged=skip and is_incremental,
        delete_by=_delete_columns(raw, table, problems) if operation == "delete+insert" else (),
        clauses=clauses if is_incremental else None,
        window=_batch_window(raw.config, problems) if operation == "microbatch" else None,
    )


def _configured_strategy(raw: RawConfig, problems: Problems) -> str:
    """Return the strategy in dbt's words or, as Hudi's write operation, in the options."""
    given = raw.config.get("incremental_strategy")
    operation = raw.options.pop(_OPERATION, None)
    if operation is None:
        return str(given or "default")
    operation = operation.lower()
    legal = [word for word in STRATEGIES if STRATEGIES[word] not in _NOT_OF_HUDI]
    if operation not in legal:
        problems.add(f"options say {_OPERATION} = {operation!r}; legal values: {', '.join(legal)}")
    if given and STRATEGIES.get(str(given), given) != STRATEGIES.get(operation, operation):
        problems.add(
            f"incremental_strategy is {given!r} but options say {_OPERATION} = {operation!r}; give one of them"
        )
    return str(given or operation)


def _strategy(strategy: str, table: ModelTable, own_strategies: Collection[str], problems: Problems) -> str:
    """Return the strategy, a default for the table; a refused or misspelled one is a problem."""
    if strategy in own_strategies:
        return strategy
    if strategy == "default":
        return "upsert" if table.record_key else "insert"
    if strategy in _REFUSED:
        problems.add(
            f"incremental_strategy {strategy!r} is not supported; {_REFUSED[strategy]} "
            f"(supported: {', '.join(STRATEGIES)})"
        )
    elif strategy not in STRATEGIES:
        problems.add(
            f"incremental_strategy is {strategy!r}; {did_you_mean(strategy, STRATEGIES)}"
            f"legal values: {', '.join(STRATEGIES)}; for one of your own, dbt could not find an incremental strategy "
            f'macro with the name "get_incremental_{strategy}_sql"'
        )
    if strategy in _WITHOUT_KEY and not table.record_key:
        problems.add(
            f"incremental_strategy {strategy!r} needs unique_key to find the rows; set it, or use {_WITHOUT_KEY[strategy]}"
        )
    return strategy


def _operation(strategy: str, table: ModelTable, own_strategies: Collection[str]) -> str | None:
    """Return the write operation behind a strategy; without a key there is nothing to merge with."""
    if strategy in own_strategies:
        return None
    operation = STRATEGIES.get(strategy)
    return "insert" if operation == "upsert" and not table.record_key else operation


def _predicates(config: Mapping[str, object], problems: Problems) -> tuple[str, ...]:
    value = config.get("incremental_predicates") or config.get("predicates")
    if value is None:
        return ()
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) for item in items):
        problems.add(f"incremental_predicates is {value!r}; give a list of SQL conditions")
        return ()
    return tuple(items)


def _on_schema_change(config: Mapping[str, object], problems: Problems) -> str:
    value = config.get("on_schema_change") or ON_SCHEMA_CHANGE[0]
    evolves = boolean(
        "merge_with_schema_evolution", config.get("merge_with_schema_evolution"), problems, False
    )
    if evolves and value == ON_SCHEMA_CHANGE[0]:
        # new columns of the source are added, those that it lacks are kept
        return "append_new_columns"
    if value not in ON_SCHEMA_CHANGE:
        problems.add(f"on_schema_change is {value!r}; legal values: {', '.join(ON_SCHEMA_CHANGE)}")
        return ON_SCHEMA_CHANGE[0]
    return str(value)


def _delete_columns(raw: RawConfig, table: ModelTable, problems: Problems) -> tuple[str, ...]:
    """Return the columns of delete+insert, which need not be the record key."""
    columns = names("unique_key", raw.config.get("unique_key"), problems) or table.record_key
    if not columns:
        problems.add(
            "incremental_strategy 'delete+insert' needs unique_key, the columns whose values say which rows go; set it, or use "
            "replace_where with incremental_predicates"
        )
    return columns


def _batch_window(config: Mapping[str, object], problems: Problems) -> BatchWindow | None:
    """Return the window of time of a microbatch model; dbt sets its bounds when it runs a batch."""
    column = config.get("event_time")
    if not isinstance(column, str) or not column.strip():
        problems.add(
            f"incremental_strategy 'microbatch' needs event_time, a column of the model, and event_time is {column!r}; set it, "
            "with begin and batch_size"
        )
        return None
    start, end = (config.get(f"__dbt_internal_microbatch_event_time_{each}") for each in ("start", "end"))
    return BatchWindow(column.strip(), _moment(start), _moment(end))


def _moment(value: object) -> datetime | None:
    return datetime.fromisoformat(value) if isinstance(value, str) else value  # type: ignore[return-value]

"""The arguments of one write, and what is refused before anything runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa

from hudi_engine.errors import ConfigError, DataError, SchemaError
from hudi_engine.format.config.declared.engine_options import EngineOptions
from hudi_engine.format.config.declared.write_options import WriteOptions
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.own_keys import BATCHES, CHECKPOINT, CHECKPOINT_BEFORE
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.schema.meta_fields import OPERATION
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.lookup.kinds import IndexKind
from hudi_engine.table.snapshot.derive import RunTasks
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.conflict import Replaced
from hudi_engine.table.txn.metadata_conflicts import latest_checkpoint, replayed_batch
from hudi_engine.table.write.define.definition import moved_ordering_problems, ordering_problems
from hudi_engine.table.write.incoming import Incoming
from hudi_engine.table.write.operation import WHOLE_TABLE, Operation


class Changes:
    """What becomes of the rows of a batch and of those of the table; by default any stored row may take part in it.

    Whoever has the rows makes of both a batch with flags.
    """

    reads_all: ClassVar[bool] = True
    """Whether the rows depend on every partition, also on those that they do not touch."""
    of_statement: ClassVar[bool] = False
    """Whether it is a statement, which makes no instant where no row fulfils its condition."""

    @property
    def replaced(self) -> Replaced:
        """The replaced rows as the commit notes them; no bounds for any rows."""
        return Replaced()

    @property
    def by_key(self) -> bool:
        """Whether keys are looked up, so that new ones of another writer matter."""
        return True

    @property
    def single_rows(self) -> bool:
        """Whether two rows of one key may be treated differently."""
        return True

    @property
    def assigned(self) -> tuple[str, ...] | None:
        """Columns in which a stored row that stays may get another value; None for all."""
        return None

    def for_repeated_keys(self) -> Changes | None:
        """Return changes that do the same where keys are stored more than once; None when there are none."""
        return None


class Source(ABC):
    """The rows of a write, or the keys to delete, as they came: Arrow data in this process, or a DataFrame."""

    @property
    @abstractmethod
    def columns(self) -> Sequence[str]:
        """Names of the columns as they came."""

    @property
    @abstractmethod
    def run_sidecars(self) -> RunTasks:
        """Who makes the files that Spark reads in the place of logs."""

    @abstractmethod
    def incoming(self, request: WriteRequest, state: TableState, index: IndexKind) -> Incoming:
        """Fit the rows to the table and give them their keys; all refusals of rows happen here.

        Args:
            request: The write, with the options that the table keeps below those of the call.
            state: The table with the settings and the columns that the write gives it.
            index: The index that the options name.
        """

    @abstractmethod
    def snapshot(self, state: TableState, options: Options) -> Any:
        """Return the rows of a state in the form of these, for a look at them before the commit."""


@dataclass(frozen=True)
class WriteRequest:
    """The arguments of one write.

    Args:
        rows: The rows, or the keys to delete.
        update_columns: Upsert only: columns of existing rows to replace; None for all.
        match_condition: Upsert only: SQL over DBT_INTERNAL_SOURCE and DBT_INTERNAL_DEST that an existing row must fulfil
            to count as a match; a row without a match is inserted, as in SQL MERGE.
        prepped: Rows carry ``_hoodie_record_key`` and ``_hoodie_partition_path`` of the table already.
        new_schema: The rows' columns become the table's, whatever it had before (rebuild).
        columns: Data columns that the table has from this commit on, checked as a change of its schema is; None for those it
            has, and new ones of the rows.
        columns_of: The table as it was when ``columns`` were made up; None when that is the state the write begins with.
        base: The table as it was before the rows were read from it; None when they come from elsewhere.
        reads_all: The rows depend on all that ``base`` holds, not on the partitions alone that they lie in.
        held: The table as the caller has read it already, None to read it.
        changes: Makes of the rows, and those of the table, rows with flags.
        partitions: Overwrites only: partitions that are replaced even where no row comes; other partitions get no rows.
        follows: The checkpoint that the one it notes follows; None when it notes none, or that does not matter.
    """

    operation: Operation
    rows: Source
    options: Options
    update_columns: tuple[str, ...] | None = None
    match_condition: str | None = None
    prepped: bool = False
    new_schema: bool = False
    columns: pa.Schema | None = None
    columns_of: TableState | None = None
    base: TableState | None = None
    reads_all: bool = False
    held: TableState | None = None
    changes: Changes | None = None
    partitions: tuple[str, ...] = ()
    follows: str | None = None

    @property
    def single_rows(self) -> bool:
        """Whether stored rows were chosen one by one, so that others of their key must not change with them."""
        if self.changes is not None:
            return self.changes.single_rows
        return self.prepped or self.match_condition is not None

    @property
    def own_rows(self) -> bool:
        """Whether what is written depends on rows of the table."""
        return self.base is not None or self.match_condition is not None or self.changes is not None


def names_changes(config: TableConfig, request: WriteRequest) -> bool:
    """Tell whether the rows name their own changes (changelog mode)."""
    return (
        config.keeps_operations
        and request.operation.name is WriteOperation.UPSERT
        and not request.prepped
        and OPERATION in request.rows.columns
    )


def combines(request: WriteRequest) -> bool:
    """Tell whether rows of the batch with the same key are merged into one."""
    option = request.operation.combine_option
    return option is not None and (request.options[option] or skips_existing(request))


def skips_existing(request: WriteRequest) -> bool:
    """Tell whether rows whose key is stored are left out (insert without duplicates)."""
    return (
        request.operation.name is WriteOperation.INSERT
        and request.options[WriteOptions.INSERT_DROP_DUPLICATES]
    )


def skips_unchanged(request: WriteRequest) -> bool:
    """Whether rows that equal what is stored are left out of an upsert."""
    return request.operation.name is WriteOperation.UPSERT and request.options[EngineOptions.SKIP_UNCHANGED]


def check_request(config: TableConfig, request: WriteRequest, index: IndexKind) -> None:
    """Refuse what the table or the index cannot do; raises ConfigError."""
    _check_taken_ordering(config, request)
    if request.options[WriteOptions.ERROR_TABLE]:
        raise ConfigError(
            f"{WriteOptions.ERROR_TABLE} is true; legal value: false. Only models of dbt have an error table: give it in the "
            "hudi_options of a model, not in a profile or in Python"
        )
    operation = request.operation
    upserts = operation.name is WriteOperation.UPSERT and not request.prepped and request.changes is None
    if upserts and not config.record_key_fields:
        raise ConfigError(
            f"table {config.name!r} has no record key, so there is nothing to upsert by; use insert, or make the table "
            "with record_key"
        )
    if names_changes(config, request):
        others = {
            f"the index {index.name}": index.is_global,
            "update_columns": request.update_columns is not None,
            "match_condition": request.match_condition is not None,
            "replacing rows": request.changes is not None,
        }
        found = [name for name, given in others.items() if given]
        if found:
            raise ConfigError(
                f"the batch names its changes in {OPERATION!r}, which cannot be combined with {', '.join(found)}; leave the "
                "column or the other out"
            )
    _check_drop_of_duplicates(config, request)
    if index.buckets is not None and skips_unchanged(request):
        raise ConfigError(
            "hoodie.engine.skip.unchanged is true and hoodie.index.type is BUCKET, whose rows are written without a look at what "
            "is stored; legal value: false. Leave the option out, or make the table with another index"
        )
    if index.buckets is not None and config.keeps_operations and request.changes is not None:
        raise ConfigError(
            f"rows of table {config.name!r} cannot be deleted and inserted in one commit: it is in changelog mode, whose log has "
            "one row a key, and hoodie.index.type is BUCKET, which gives a key one place. Use upsert, or delete() and insert()"
        )
    if index.buckets is not None and not config.record_key_fields:
        raise ConfigError(
            "hoodie.index.type is BUCKET, which needs a record key; make the table with record_key"
        )


def _check_drop_of_duplicates(config: TableConfig, request: WriteRequest) -> None:
    """Refuse to drop duplicates without keys, or in a load, which looks up none; a build has no rows to look up."""
    if skips_existing(request) and not config.record_key_fields:
        raise ConfigError(
            f"hoodie.datasource.write.insert.drop.duplicates is true, but table {config.name!r} has generated record keys, so "
            "no row is a duplicate; leave the option out, or make the table with record_key"
        )
    loads = request.operation.name is WriteOperation.BULK_INSERT and not request.new_schema
    if loads and request.options[WriteOptions.INSERT_DROP_DUPLICATES]:
        raise ConfigError(
            "hoodie.datasource.write.insert.drop.duplicates is true, but a bulk_insert looks up no keys and adds every row; use "
            "insert (in dbt insert_new), or leave the option out"
        )


def _check_taken_ordering(config: TableConfig, request: WriteRequest) -> None:
    """Refuse to take some of the ordering fields: the row that comes of it would be older, or newer, than both of its makers."""
    if request.update_columns is None or request.prepped:
        return
    given = {name.lower() for name in request.update_columns}
    taken = [name for name in config.ordering_fields if name.lower() in given]
    if taken and len(taken) < len(config.ordering_fields):
        raise ConfigError(
            f"update_columns takes {', '.join(taken)} of the ordering fields {', '.join(config.ordering_fields)} of table "
            f"{config.name!r}, so that a row would have one part of its place in the order from each side; take all of them or none"
        )


def check_inside(touched: Iterable[str], partitions: Sequence[str]) -> None:
    """Refuse rows of other partitions than those that are replaced; raises DataError."""
    others = sorted(set(touched) - set(partitions))
    if others:
        raise DataError(
            f"the data has rows of partition {others[0]!r}, which is not one of those to replace ({', '.join(partitions)}); "
            "leave the rows out, or name the partition"
        )


def check_columns(config: TableConfig, given: Sequence[str], schema: pa.Schema, index: IndexKind) -> None:
    """Refuse data without the table's key, ordering and partition columns; raises SchemaError or ConfigError."""
    names = {name.lower() for name in given}
    roles = [("record key", name) for name in config.record_key_fields]
    roles += [("ordering", name) for name in config.ordering_fields]
    roles += [("partition", field.name) for field in config.partition_fields]
    missing = [
        f"{role} field {name!r}" for role, name in roles if name.partition(".")[0].lower() not in names
    ]
    if missing:
        raise SchemaError(
            f"the data lacks {', '.join(missing)} of table {config.name!r}; it has {list(given)}"
        )
    orderings = config.ordering_fields
    problems = [problem for name in orderings for problem in ordering_problems(schema, name)]
    problems += moved_ordering_problems(
        schema, orderings, config.table_type, index, partitioned=config.is_partitioned
    )
    if problems:
        raise ConfigError("; ".join(problems), tuple(problems))


def held_for_batch(request: WriteRequest, storage: Storage) -> tuple[WriteRequest, str | None]:
    """Return a request with the table as it looks for its batch there, and that batch, in words, where the table has it."""
    if BATCHES not in request.options.raw:
        return request, None
    held = request.base or request.held or TableState.load(storage)
    return replace(request, held=held), replayed_batch(held.timeline, request.options)


def following(request: WriteRequest, storage: Storage) -> WriteRequest:
    """Return a request with the checkpoint that its own follows.

    A write that replaces all rows does not depend on what was noted before, unless its options name what it follows.
    """
    if CHECKPOINT not in request.options.raw:
        return request
    before = request.options.raw.get(CHECKPOINT_BEFORE)
    if before is not None or request.operation.replaces == WHOLE_TABLE:
        return replace(request, follows=before)
    held = request.base or request.held or TableState.load(storage)
    last = latest_checkpoint(held.timeline)
    return replace(request, held=held, follows="{}" if last is None else last[1])


def extra_metadata(options: Options) -> dict[str, str]:
    """Return the options of a write that its commit keeps: the checkpoint, and those with the prefix of an option."""
    prefix = options[WriteOptions.COMMIT_METADATA_PREFIX] or "_"
    always = (CHECKPOINT, BATCHES)
    return {key: value for key, value in options.raw.items() if key.startswith(prefix) or key in always}

"""A table as one write or read finds it: properties, timeline, schema."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudi_engine.errors import TimelineError
from hudi_engine.format.config.declared.engine_options import MergeOptions
from hudi_engine.format.config.declared.write_options import FileOptions
from hudi_engine.format.config.enums import KeyGeneratorType, MergeMode
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.config.trusted_rules import RULE_PROPERTY
from hudi_engine.format.filegroup.missing import check_nothing_missing
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.merge.missing_columns import defaults_that_fill, refuse_defaults, schema_with_defaults
from hudi_engine.format.merge.modes.registry import merge_rule, refuse_to_write
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.table_reader import read_context, table_schema
from hudi_engine.format.schema.avro import arrow_to_avro, with_meta_fields
from hudi_engine.format.schema.avro_change import avro_with_columns
from hudi_engine.format.schema.meta_fields import with_meta_columns, without_meta_columns
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.active import Timeline, first_write
from hudi_engine.format.timeline.continuity import still_shows
from hudi_engine.format.timeline.schema_commits import LATEST_SCHEMA, load_schema_history
from hudi_engine.table.handles.base_file_options import BaseFileOptions
from hudi_engine.table.handles.write_context import WriteContext
from hudi_engine.table.lookup.stored_keys import names_its_field

logger = logging.getLogger(__name__)

COMMITS_LOOKED_AT = 20


@dataclass(frozen=True)
class TableState:
    """One consistent look at a table.

    Args:
        columns: The data columns that a write under way gives it, None for those it has.
        is_written_anew: Whether that write leaves nothing of what it had.
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    columns: pa.Schema | None = None
    is_written_anew: bool = False

    @classmethod
    def load(cls, storage: Storage) -> TableState:
        """Read properties and timeline from the storage; raises as TableConfig.load does."""
        config = TableConfig.load(storage)
        timeline = Timeline.load(storage, config)
        if not timeline.instants:
            # An upgrade may have moved the timeline since the properties were read.
            config = TableConfig.load(storage)
            timeline = Timeline.load(storage, config)
        return cls(storage, config, timeline)

    def schema_json(self, as_of: str | None = None) -> str | None:
        """Return Avro schema of the table's data columns, None for a table that never had one."""
        return self.timeline.table_schema_json(as_of)

    def schema_texts(self) -> dict[str, str]:
        """Return the metadata on columns of a commit that does not change them: the Avro schema, and ids where they have some."""
        text = self.schema_json()
        history = load_schema_history(self.storage, self.timeline)
        ids = {} if history is None else {LATEST_SCHEMA: history.texts[-1]}
        return {**({} if text is None else {"schema": text}), **ids}

    def data_schema(self, as_of: str | None = None) -> pa.Schema | None:
        """Return Arrow schema of the data columns, None for a table that never had one."""
        if as_of is None and self.columns is not None:
            return self.columns
        if self.schema_json(as_of) is None:
            return None
        return without_meta_columns(table_schema(self.config, self.timeline, as_of))

    def readable_schema(self, as_of: str | None = None) -> pa.Schema | None:
        """Return the columns in which a state is read: today's for one before the first commit, which has no rows."""
        writes = self.timeline.completed_writes
        if as_of is not None and writes and as_of < writes[0].requested_time:
            oldest = first_write(self.timeline) or writes[0]
            if as_of < oldest.requested_time:
                told = "as of %s table %s has no rows: its oldest commit is %s"
                logger.warning(told, as_of, self.config.name, oldest.requested_time)
        return self.data_schema(as_of) or self.data_schema()

    def check_rows_writable(self) -> None:
        """Refuse a table that merges by an unknown class, before a write or a service begins."""
        refuse_to_write(self.config)

    def avro_schema(self, data_schema: pa.Schema) -> dict[str, Any]:
        """Return Avro record of ``data_schema``; of the table's own text is kept what does not change."""
        text = None if self.is_written_anew else self.schema_json()
        if text is None:
            return arrow_to_avro(data_schema, self.config.name)
        return avro_with_columns(text, data_schema, self.config.name)

    def read_context(
        self, data_schema: pa.Schema, options: Options, *, as_of: str | None = None
    ) -> ReadContext:
        """Tell how slices of this state are read into ``data_schema``.

        Raises:
            ConfigError: The table names a merge rule of the user's own that is not allowed or cannot be imported.
        """
        if self.config.merge_mode is MergeMode.CUSTOM and RULE_PROPERTY in self.config.properties:
            merge_rule(self.config)
        avro = None if self.is_written_anew else self.schema_json(as_of)
        history = load_schema_history(self.storage, self.timeline)
        return ReadContext(
            storage=self.storage,
            config=self.config,
            schema=with_meta_columns(data_schema, operation=self.config.keeps_operations),
            is_committed=self.timeline.committed(as_of),
            as_of=as_of,
            memory_limit_bytes=options[MergeOptions.MERGE_MEMORY],
            spill_dir=options[MergeOptions.SPILL_FOLDER],
            schema_history=history,
            defaults=defaults_that_fill(self.config, avro),
            fills_by=schema_with_defaults(self.config, avro, by_ids=history is not None),
        )

    def write_context(
        self,
        options: Options,
        data_schema: pa.Schema,
        read: ReadContext,
        *,
        instant: str,
        action: str,
        operation: str,
    ) -> WriteContext:
        """Tell how files of this state are written by an instant.

        Args:
            read: How slices are read that the write merges or moves.

        Raises:
            UnsupportedTableError: Rows are filled column by column, and columns have defaults other than null; or the
                table merges by an unknown class.
        """
        avro = self.avro_schema(data_schema)
        refuse_to_write(self.config)
        refuse_defaults(self.config, avro)
        return WriteContext(
            storage=self.storage,
            config=self.config,
            options=options,
            instant=instant,
            action=action,
            operation=operation,
            schema=read.schema,
            avro_schema=full_avro(avro, self.config),
            read=read,
            base_files=BaseFileOptions.from_options(options),
            average_row_bytes=self.average_row_bytes(options),
        )

    def keys_carry_field_name(self) -> bool | None:
        """Tell whether the keys of a single-field complex key generator are written ``field:value``; None when it does not matter.

        Hudi releases differ, so a stored key decides (Hudi table format, single-field complex keys).
        """
        config = self.config
        if config.key_generator is not KeyGeneratorType.COMPLEX or len(config.record_key_fields) != 1:
            return None
        read = None
        for each in sorted(self.view().latest_slices(), key=lambda each: each.base_file is None):
            read = read or read_context(self.storage, config, self.timeline)
            named = names_its_field(read, each)
            if named is not None:
                return named
        return False

    def view(self, partitions: Iterable[str] | None = None, *, as_of: str | None = None) -> FileSystemView:
        """Return file slices of the table, of some partitions if named."""
        return FileSystemView.build(
            self.storage, self.config, self.timeline, as_of=as_of, partitions=partitions
        )

    def whole_view(self, *, as_of: str | None = None) -> FileSystemView:
        """Return file slices of the whole table, all of whose files are there.

        Raises:
            CorruptTableError: A file of a commit is lost; see check_nothing_missing for which commits are looked at.
        """
        view = self.view(as_of=as_of)
        check_nothing_missing(self.storage, self.config, self.timeline, view, as_of)
        return view

    def still_view(self, *, as_of: str | None = None) -> FileSystemView:
        """Return what `whole_view` does, for readers that cannot look again when files go while they are listed.

        Raises:
            CorruptTableError: As `whole_view` does.
            TimelineError: As `check_still` does.
        """
        view = self.whole_view(as_of=as_of)
        self.check_still(as_of)
        return view

    def check_still(self, as_of: str | None = None) -> None:
        """Refuse what was listed of this state when files of it may have gone before; asked after the listing.

        Raises:
            TimelineError: The table was cleaned or restored since the look at its timeline.
        """
        if not still_shows(self.storage, self.config, self.timeline, as_of):
            raise TimelineError(
                f"the table at {self.storage.base!r} was cleaned, restored or replaced after its timeline was read and before its "
                "files were listed, so some of their rows may be missing. Read again"
            )

    def average_row_bytes(self, options: Options) -> int:
        """Return bytes a row takes in a base file, from the newest commit that wrote enough (more than the small file limit)."""
        enough = options[FileOptions.SMALL_FILE_LIMIT]
        for instant in list(reversed(self.timeline.completed_writes))[:COMMITS_LOOKED_AT]:
            metadata = self.timeline.commit_metadata(instant)
            stats = [stat for _, stat in metadata.write_stats() if not stat.is_log_file]
            written = sum(stat.total_write_bytes or 0 for stat in stats)
            rows = sum(stat.num_writes or 0 for stat in stats)
            if rows and written > enough:
                return max(1, -(-written // rows))
        return options[FileOptions.RECORD_SIZE_ESTIMATE]


def commit_schema_text(avro_schema: dict[str, Any]) -> str:
    """Return the text a commit carries as its schema: no meta fields, no blanks."""
    return json.dumps(avro_schema, separators=(",", ":"))


def full_avro(avro_schema: dict[str, Any], config: TableConfig) -> dict[str, Any]:
    """Return the record with the table's meta fields first."""
    return dict(with_meta_fields(avro_schema, operation=config.keeps_operations))

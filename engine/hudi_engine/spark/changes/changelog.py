"""The changes of a table in changelog mode as a Spark DataFrame."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.config.declared.table_options import TableOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.view import FileSystemView, WrittenLogs
from hudi_engine.format.merge.slice_reader import read_changes
from hudi_engine.format.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME, META_SCHEMA
from hudi_engine.spark.read.session import prepare_session
from hudi_engine.spark.read.spark_read import map_slices
from hudi_engine.spark.schema.spark_types import arrow_to_spark
from hudi_engine.table.state import TableState

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Part:
    """A slice; whether it is the oldest left of its file group, and whether its base file only has copies of clustered rows."""

    file_slice: FileSlice
    is_first: bool
    is_copy: bool


def changes_frame(
    spark: SparkSession, state: TableState, options: Options, *, start: str | None, end: str | None
) -> DataFrame:
    """Return every change after ``start`` up to ``end`` that the table's files still have, in the order of the commits.

    Raises:
        UnsupportedTableError: The table is not in changelog mode.
    """
    prepare_session(spark)
    config = state.config
    if not config.keeps_operations:
        raise UnsupportedTableError(
            f"table {config.name!r} ({config.table_type.value}) keeps no changelog; make it with "
            f"{TableOptions.KEEP_OPERATIONS}=true and table_type mor, or read its snapshot as of two instants"
        )
    data_schema = state.data_schema()
    if data_schema is None:
        return spark.createDataFrame([], arrow_to_spark(META_SCHEMA))
    read = state.read_context(data_schema, options)
    if start is not None or end is not None:
        read = replace(read, instant_range=(start, end))
    parts = _parts(state)
    _warn_of_gaps(state, parts, start)

    def rows_of(part: _Part) -> pa.Table:
        return read_changes(read, part.file_slice, is_first=part.is_first, skips_base=part.is_copy)

    frame = map_slices(spark, parts, read.schema, rows_of)
    number = F.split(F.col(COMMIT_SEQNO), "_")
    return frame.orderBy(F.col(COMMIT_TIME), number.getItem(1).cast("long"), number.getItem(2).cast("long"))


def _parts(state: TableState) -> list[_Part]:
    view = state.view()
    copies = _copies(state, view)
    written = WrittenLogs(state.config, state.timeline)
    return [
        _Part(each, number == len(slices) - 1, (partition, each.base_instant) in copies)
        for partition in view.partitions
        for slices in view.all_slices(partition).values()
        for number, each in enumerate(written.in_slices(slices))
    ]


def _copies(state: TableState, view: FileSystemView) -> set[tuple[str, str]]:
    """Return the partitions, each with a clustering's instant, where all file groups that it took out are still there."""
    return {
        (partition, instant)
        for instant, replaced in _clusterings(state).items()
        for partition, file_ids in replaced.items()
        if view.all_slices(partition).keys() >= set(file_ids)
    }


def _clusterings(state: TableState) -> dict[str, dict[str, list[str]]]:
    """Return the file groups that each completed clustering took out, by partition."""
    found = {}
    for instant in state.timeline.completed_writes:
        if instant.action == "replacecommit":
            metadata = state.timeline.commit_metadata(instant)
            if metadata.is_of_service:
                found[instant.requested_time] = metadata.partition_to_replace_file_ids or {}
    return found


def _warn_of_gaps(state: TableState, parts: list[_Part], start: str | None) -> None:
    """Warn when requested changes were collapsed by a compaction or clustering whose input is cleaned away."""
    services = {each.requested_time for each in state.timeline.completed_writes if each.action == "commit"}
    services.update(_clusterings(state))
    first = state.timeline.first_write_time
    collapsed = [
        part.file_slice.base_instant
        for part in parts
        if part.is_first
        and not part.is_copy
        and (start is None or start < part.file_slice.base_instant)
        and (
            part.file_slice.base_instant in services
            or (first is not None and part.file_slice.base_instant < first)
        )
    ]
    if collapsed:
        logger.warning(
            "changes of table %s: %d file group(s) are complete only after instant %s at the latest; what was before is "
            "given as rows with their last operation, because compaction collapsed it or clustering moved it, and clean removed "
            "the files",
            state.config.name,
            len(collapsed),
            max(collapsed),
        )

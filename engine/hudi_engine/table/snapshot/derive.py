"""Making files for Spark from files of a table, in this process or on executors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_engine.errors import StorageError
from hudi_engine.format import parallel
from hudi_engine.format.config.enums import ParquetCodec
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.merge.base_reader import read_base_file
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.schema.leaves import dictionary_leaves, leaves_with_statistics
from hudi_engine.format.schema.meta_fields import without_meta_columns
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.paths import join

CONVERSION = "2"
"""Version of how files are rewritten, part of what a copy is known by; one of version 1, without a number, may have
dictionaries of floating point numbers, by which Spark does not find a stored -0.0."""
_CONVERTED_FOLDER = f"converted-{CONVERSION}"


class DeriveTask(Protocol):
    """One file to be made; picklable."""

    @property
    def size_bytes(self) -> int:
        """Bytes to read, about."""

    @property
    def path(self) -> str:
        """Where the file goes."""

    def run(self) -> int | None:
        """Make the file; returns its size in bytes, None when none is needed."""


RunTasks = Callable[[Sequence[DeriveTask]], "list[int | None]"]
"""Runs tasks and returns what each returned, in the same order."""

MadeSidecars = Mapping[tuple[str, str, str], tuple[str, int]]
"""Path and bytes of sidecars, by partition path, file id and identity of what they hold."""

NONE_MADE: MadeSidecars = {}


@dataclass(frozen=True)
class AfterWrite:
    """Runs tasks as ``run`` does, after a write whose tasks have made some of the files already."""

    run: RunTasks
    made: MadeSidecars

    def __call__(self, tasks: Sequence[DeriveTask]) -> list[int | None]:
        """Run tasks."""
        return self.run(tasks)


@dataclass(frozen=True)
class ConversionTask:
    """Rewriting a base file under the table's schema, row by row in the same order, at ``path`` of ``target``.

    Args:
        with_meta: Whether the copy has the meta columns.
    """

    context: ReadContext
    base_file: BaseFile
    target: Storage
    path: str
    with_meta: bool = False

    @property
    def size_bytes(self) -> int:
        """Bytes of the base file."""
        return self.base_file.size

    def run(self) -> int | None:
        """Rewrite the file unless that was done before; returns its bytes."""
        found = self.target.stat(self.path)
        if found is not None:
            return found.size
        schema = self.context.schema
        names = (schema if self.with_meta else without_meta_columns(schema)).names
        rows = read_base_file(self.context, self.base_file, names)
        try:
            with (
                self.target.open_output(self.path) as sink,
                spark_writer(sink, rows.schema, rows, rows) as writer,
            ):
                writer.write_table(rows)
        except FileExistsError:
            # Another process has converted the same file under the same schema meanwhile.
            pass
        return size_of(self.target, self.path)


def spark_writer(
    sink: BinaryIO | pa.NativeFile, schema: pa.Schema, sample: pa.Table, rows: pa.Table
) -> pq.ParquetWriter:
    """Return the writer of a file that Spark reads.

    Args:
        sample: Rows whose values decide which columns have a dictionary; floating point numbers never have one.
        rows: Rows that decide which columns have statistics.
    """
    return pq.ParquetWriter(
        sink,
        schema,
        compression=ParquetCodec.ZSTD.value,
        use_dictionary=dictionary_leaves(schema, sample),
        write_statistics=leaves_with_statistics(schema, rows),
        store_schema=False,
        write_page_checksum=True,
    )


def conversion_path(base_file: BaseFile, schema_digest: str) -> str:
    """Return where a rewritten base file is kept; the same file and schema give the same path."""
    return join(_CONVERTED_FOLDER, schema_digest, base_file.partition, base_file.name)


def make_in_threads(tasks: Sequence[DeriveTask]) -> list[int | None]:
    """Run tasks in this process, as many at a time as there are cores."""
    return parallel.run_in_threads(run_task, tasks)


def run_task(task: DeriveTask) -> int | None:
    """Run one task."""
    return task.run()


def size_of(storage: Storage, path: str) -> int:
    """Return the size of a file that was just written.

    Raises:
        StorageError: when it is not there.
    """
    status = storage.stat(path)
    if status is None:
        raise StorageError(f"{path!r} below {storage.base!r} was written and is missing; publish once more")
    return status.size

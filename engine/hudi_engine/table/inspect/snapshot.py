"""The file groups of a table as they are now, listed and counted once for whoever wants to know more than one thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.missing import GONE
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.state import TableState


@dataclass(frozen=True)
class Snapshot:
    """The newest slices of a table.

    Args:
        slices: The newest slice of each live file group.
        base_rows: Rows of their base files by path, by the footers.
    """

    view: FileSystemView
    slices: Sequence[FileSlice]
    base_rows: Mapping[str, int]

    @classmethod
    def of(cls, state: TableState) -> Snapshot:
        """List a table and read the footers of its base files."""
        view = state.view()
        slices = view.latest_slices()
        bases = [each.base_file for each in slices if each.base_file is not None]
        rows = footer_rows(state.storage, bases)
        return cls(view, slices, dict(zip((base.path for base in bases), rows)))

    @property
    def bases(self) -> list[BaseFile]:
        """The base files of the newest slices."""
        return [each.base_file for each in self.slices if each.base_file is not None]


def footer_rows(storage: Storage, bases: Sequence[BaseFile]) -> list[int]:
    """Return the rows of base files, from their footers, in the same order."""
    return on_threads(lambda base: _footer_rows(storage, base), bases)


def _footer_rows(storage: Storage, base: BaseFile) -> int:
    try:
        with storage.open_input(base.path) as source:
            return int(pq.read_metadata(source).num_rows)
    except FileNotFoundError as error:
        raise TimelineError(f"base file {base.path!r} {GONE}; look again") from error
    except (pa.ArrowInvalid, OSError) as error:
        raise CorruptTableError(f"the footer of base file {base.path!r} cannot be read: {error}") from error

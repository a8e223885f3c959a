"""Finding the rows of a file that a batch of keys touches.

A tag is computed per base file: for every row of the file the number of the batch row with the same record key, or null.
Duplicate keys inside a file (plain inserts allow them) are each tagged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.filegroup.file_slice import FileSlice
from hudi_engine.index.filters.footer import read_key_footer, within_range
from hudi_engine.merge.base_reader import read_base_file
from hudi_engine.merge.read_context import ReadContext
from hudi_engine.merge.slice_reader import read_slice
from hudi_engine.schema.meta_fields import RECORD_KEY


@dataclass(frozen=True)
class SliceTag:
    """Which batch row each row of a slice's base file belongs to.

    Args:
        file_slice: The slice looked at.
        batch_rows: For each row of the base file the batch row number, null where the batch has no such key.
        matched: Batch row numbers with a match, ascending, each once.
    """

    file_slice: FileSlice
    batch_rows: pa.Array
    matched: pa.Array

    def without(self, rows: np.ndarray) -> SliceTag:
        """The tag with some batch rows taken as not matched."""
        if len(rows) == 0:
            return self
        dropped = pa.array(rows, self.batch_rows.type)
        batch_rows = pc.if_else(
            pc.is_in(self.batch_rows, value_set=dropped),
            pa.scalar(None, self.batch_rows.type),
            self.batch_rows,
        )
        kept = pc.invert(pc.is_in(self.matched, value_set=dropped))
        return SliceTag(self.file_slice, batch_rows, self.matched.filter(kept))


@dataclass(frozen=True)
class KeyPruning:
    """Whether files are skipped by the key range and Bloom filter of their footers (BLOOM index)."""

    by_footer: bool = False
    by_range: bool = True


def tag_slice(
    read: ReadContext, file_slice: FileSlice, keys: pa.Array, pruning: KeyPruning, *, with_logs: bool = False
) -> SliceTag | None:
    """Tag one slice; None when the batch has no key of it.

    Args:
        read: How the slice is read.
        file_slice: A latest slice. Slices that have logs only are looked up through their merged rows.
        keys: Distinct record keys of the batch; null for a row that is not looked up.
        pruning: Footer pruning rule.
        with_logs: Whether keys that live only in the slice's logs count as well (bucket index).
    """
    base = file_slice.base_file
    if base is None or (with_logs and file_slice.log_files):
        stored = read_slice(read, file_slice, columns=[RECORD_KEY]).column(RECORD_KEY)
    else:
        if pruning.by_footer and not _footer_admits(read, base.path, keys, pruning):
            return None
        stored = read_base_file(read, base, columns=[RECORD_KEY]).column(RECORD_KEY)
    batch_rows = pc.index_in(
        stored.combine_chunks() if isinstance(stored, pa.ChunkedArray) else stored, value_set=keys
    )
    if isinstance(batch_rows, pa.ChunkedArray):
        batch_rows = batch_rows.combine_chunks()
    if batch_rows.null_count == len(batch_rows):
        return None
    matched = pc.unique(batch_rows.drop_null())
    return SliceTag(file_slice, batch_rows, matched.take(pc.sort_indices(matched)))


def _footer_admits(read: ReadContext, path: str, keys: pa.Array, pruning: KeyPruning) -> bool:
    footer = read_key_footer(read.storage, path)
    candidates = keys.drop_null()
    if pruning.by_range and footer.min_key is not None and footer.max_key is not None:
        candidates = candidates.filter(within_range(candidates, footer.min_key, footer.max_key))
    if len(candidates) == 0:
        return False
    if footer.bloom is None:
        return True
    return bool(footer.bloom.might_contain_all(candidates).any())

"""Finding the rows of a file that a batch of keys touches.

For every row of a base file a tag has the number of the batch row with the same record key, or null. Duplicate keys inside a
file (plain inserts allow them) are each tagged.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import InvalidKeyError
from hudi_engine.format.config.declared.table_options import TableOptions
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.index.filters.footer import read_key_footer, within_range
from hudi_engine.format.merge.base_reader import read_base_file
from hudi_engine.format.merge.key_sets import places_in
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.merge.slice_reader import read_slice
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.format.storage.base import Storage

logger = logging.getLogger(__name__)

KeysOf = Callable[[ReadContext, BaseFile], pa.ChunkedArray]
"""Returns the record keys of a base file, in file order."""

KeepKeys = Callable[[Storage, str, pa.ChunkedArray], None]
"""Takes the storage and path of a base file, and its record keys in file order."""

_Name = tuple[str, str, int, int]


def keys_of_file(read: ReadContext, base_file: BaseFile) -> pa.ChunkedArray:
    """Read the record keys of a base file."""
    return read_base_file(read, base_file, columns=[RECORD_KEY]).column(RECORD_KEY)


class KeyCache:
    """The keys of the base files that were used last; safe to use by several threads."""

    def __init__(self) -> None:
        self._held: OrderedDict[_Name, pa.ChunkedArray] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def keys_of(self, limit: int) -> KeysOf:
        """Return a way to the keys of base files that keeps at most ``limit`` bytes of them; 0 keeps nothing."""

        def find(read: ReadContext, base_file: BaseFile) -> pa.ChunkedArray:
            name = (read.storage.base, base_file.path, base_file.size, base_file.modified_ms)
            with self._lock:
                known = self._held.get(name)
                if known is not None:
                    self._held.move_to_end(name)
                    return known
            keys = keys_of_file(read, base_file)
            self._keep(name, keys, limit)
            return keys

        return find

    def keeping(self, limit: int) -> KeepKeys:
        """Return a function that keeps the keys of a base file just written, on a near storage."""

        def keep(storage: Storage, path: str, keys: pa.ChunkedArray) -> None:
            status = storage.stat(path) if storage.is_near else None
            if status is not None:
                self._keep((storage.base, path, status.size, status.modified_ms), keys, limit)

        return keep

    def _keep(self, name: _Name, keys: pa.ChunkedArray, limit: int) -> None:
        with self._lock:
            if name in self._held or keys.nbytes > limit:
                return
            self._held[name] = keys
            self._bytes += keys.nbytes
            while self._bytes > limit:
                _, dropped = self._held.popitem(last=False)
                self._bytes -= dropped.nbytes


DRIVER_KEYS = KeyCache()
"""Of the process that plans writes."""


_TIME = re.compile(r"-?\d{4,}-\d\d-\d\d[ T]\d\d:\d\d")


def check_key_form(read: ReadContext, stored: str | None, keys: pa.Array) -> None:
    """Refuse keys that are times in another form than a stored one; raises InvalidKeyError with the option to set.

    No property of a table records the form, and Hudi's ``bulk_insert`` writes text for every value of the option.
    """
    fields = read.config.record_key_fields
    place = read.schema.get_field_index(fields[0]) if len(fields) == 1 else -1
    if stored is None or place < 0 or not pa.types.is_timestamp(read.schema.field(place).type):
        return
    new = next(iter(keys.drop_null().slice(0, 1).to_pylist()), None)
    if new is None or bool(_TIME.search(stored)) == bool(_TIME.search(new)):
        return
    wanted = "true" if _TIME.search(stored) else "false"
    raise InvalidKeyError(
        f"{fields[0]} is the record key, and the table has its times as {stored!r} where this write makes {new!r}: no stored row "
        f"would be found; set {TableOptions.CONSISTENT_TIMESTAMPS.key} to {wanted}"
    )


@dataclass(frozen=True)
class SliceTag:
    """Which batch row each row of a slice's base file belongs to.

    Args:
        batch_rows: For each row of the base file the batch row number, null where the batch has no such key.
        matched: Batch row numbers with a match, ascending, each once.
    """

    file_slice: FileSlice
    batch_rows: pa.Array
    matched: pa.Array

    def without(self, rows: npt.NDArray[Any]) -> SliceTag:
        """Return the tag with some batch rows taken as not matched."""
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


class StoredKeys(Enum):
    """Which keys of a slice count as stored."""

    BASE = "base"
    """Those of its base file, deleted ones included: an update there brings the row back in its place."""
    BASE_AND_LOGS = "base and logs"
    """Also those that are in its logs only."""
    LIVE = "live"
    """Those of its rows once the logs are merged in."""


def tag_slice(
    read: ReadContext,
    file_slice: FileSlice,
    keys: pa.Array,
    pruning: KeyPruning,
    which: StoredKeys = StoredKeys.BASE,
    keys_of: KeysOf = keys_of_file,
) -> SliceTag | None:
    """Tag one latest slice; None when the batch has no key of it. Slices with logs only are looked up through their merged rows.

    Args:
        keys: Distinct record keys of the batch; null for a row that is not looked up.
    """
    base, logged = file_slice.base_file, bool(file_slice.log_files)
    live = which is not StoredKeys.BASE and logged
    if base is None or (which is StoredKeys.LIVE and logged):
        batch_rows = _batch_rows(read, live_keys(read, file_slice), keys)
    elif pruning.by_footer and not _footer_admits(read, base.path, keys, pruning):
        if not live:
            return None
        batch_rows = pa.array([], pa.int32())
    else:
        batch_rows = _batch_rows(read, keys_of(read, base), keys)
    matched = batch_rows.drop_null()
    if which is StoredKeys.BASE_AND_LOGS and logged:
        matched = pa.concat_arrays(
            [matched, _batch_rows(read, live_keys(read, file_slice), keys).drop_null()]
        )
    if len(matched) == 0:
        return None
    there = np.zeros(len(keys), dtype=bool)
    there[np.asarray(matched)] = True
    return SliceTag(file_slice, batch_rows, pa.array(np.flatnonzero(there), matched.type))


def stored_pairs(
    read: ReadContext, batch: pa.Table, tag: SliceTag, columns: Sequence[str]
) -> tuple[pa.Table, npt.NDArray[np.int64], pa.Array]:
    """Return the rows of a tag's slice, the numbers of those whose key the batch has, and for each of these the batch row."""
    rows = read_slice(read, tag.file_slice, columns=list(dict.fromkeys([RECORD_KEY, *columns])))
    keys = batch.column(RECORD_KEY).take(tag.matched).combine_chunks()
    places = pc.index_in(rows.column(RECORD_KEY).combine_chunks(), value_set=keys)
    return rows, np.flatnonzero(np.asarray(places.is_valid())), tag.matched.take(places.drop_null())


def live_keys(read: ReadContext, file_slice: FileSlice) -> pa.ChunkedArray:
    """Return the keys of a slice's rows once its logs are merged in."""
    return read_slice(read, file_slice, columns=[RECORD_KEY]).column(RECORD_KEY)


def stored_keys_of(
    read: ReadContext, file_slice: FileSlice, *, log_keys: bool
) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return the distinct keys of a slice with logs, which of their rows still exist, and the keys of its rows."""
    live = live_keys(read, file_slice).combine_chunks()
    keys = live
    if file_slice.base_file is not None:
        keys = read_base_file(read, file_slice.base_file, columns=[RECORD_KEY]).column(RECORD_KEY)
        keys = keys.combine_chunks()
        if log_keys:
            keys = pa.concat_arrays([keys, live])
    keys = pc.unique(keys)
    return keys, pc.is_in(keys, value_set=live), live


def _batch_rows(read: ReadContext, stored: pa.ChunkedArray, keys: pa.Array) -> pa.Array:
    """For each stored key the number of the batch row that has it, null for none."""
    check_key_form(read, stored[0].as_py() if len(stored) else None, keys)
    return places_in(stored, keys)


_NO_FOOTER = (
    "base file %r of table %r has neither key range nor Bloom filter in its footer: index BLOOM reads the keys of such files for "
    "every look-up. Files that are written from now on have both; a clustering writes the others again"
)
_WITHOUT_KEYS: set[str] = set()
"""Tables of which the warning was logged."""


def _footer_admits(read: ReadContext, path: str, keys: pa.Array, pruning: KeyPruning) -> bool:
    footer = read_key_footer(read.storage, path)
    check_key_form(read, footer.min_key, keys)
    candidates = keys.drop_null()
    if pruning.by_range and footer.min_key is not None and footer.max_key is not None:
        candidates = candidates.filter(within_range(candidates, footer.min_key, footer.max_key))
    if len(candidates) == 0:
        return False
    if footer.bloom is None:
        if footer.min_key is None and read.storage.base not in _WITHOUT_KEYS:
            _WITHOUT_KEYS.add(read.storage.base)
            logger.warning(_NO_FOOTER, path, read.config.name)
        return True
    return bool(footer.bloom.might_contain_all(candidates).any())

"""Rows that share their record key with others, where a write addresses single rows and not keys.

Plain inserts may store a key more than once. A file is changed by key, so a condition that only one of such rows meets would
change the others as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import RepeatedKeyError
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.table.lookup.tagging import SliceTag, live_keys
from hudi_engine.table.lookup.unit import DELETE_FLAG, INSERT_FLAG, UnitPlan, lookup_keys


def refuse_repeated(
    read: ReadContext, plan: UnitPlan, partition: str, batch: pa.Table, tags: Sequence[SliceTag]
) -> None:
    """Refuse singly selected rows whose key is stored several times, unless all become the same; raises RepeatedKeyError.

    Args:
        batch: Stored rows that change or are deleted, and new rows, which are ignored.
    """
    if not plan.single_rows:
        return
    keys = lookup_keys(batch)
    stored = _stored_copies(read, keys, tags)
    several = np.flatnonzero(stored > 1)
    if not len(several):
        return
    first = pc.index_in(keys, value_set=keys)
    among = np.bincount(np.asarray(first.drop_null()), minlength=batch.num_rows)
    for number in several:
        if among[number] != stored[number] or not _become_the_same(
            plan, batch.filter(pc.equal(first, pa.scalar(int(number), first.type)).fill_null(False))
        ):
            raise repeated(keys[int(number)].as_py(), partition)


def repeats(keys: pa.Array) -> pa.Array:
    """Return the keys that come more than once, each once."""
    counted = pc.value_counts(keys)
    return counted.field("values").filter(pc.greater(counted.field("counts"), 1))


def repeated(key: str, partition: str) -> RepeatedKeyError:
    """Return the error about one key."""
    return RepeatedKeyError(
        f"record key {key!r} is stored in several rows of partition {partition!r}, and rows of a Hudi table are told by their key: "
        "what a condition says of one of them would befall the others too. Nothing was written. Take the copies out "
        "(call repair_deduplicate), say the condition so that it is true of all of them, or choose a record key that is unique"
    )


def _stored_copies(read: ReadContext, keys: pa.Array, tags: Sequence[SliceTag]) -> np.ndarray:
    """Return for each row of a batch how many stored rows have its key; of several rows of the batch the first one counts them."""
    found = np.zeros(len(keys), dtype=np.int64)
    for tag in tags:
        # rows that are in logs only are no rows of the base file
        in_logs = np.setdiff1d(np.asarray(tag.matched), np.asarray(tag.batch_rows.drop_null()))
        found += np.bincount(np.asarray(tag.batch_rows.drop_null()), minlength=len(keys))
        found[in_logs] += 1
    if found.max(initial=0) < 2 or not any(tag.file_slice.log_files for tag in tags):
        return found
    found[:] = 0
    for tag in tags:
        rows = tag.batch_rows
        if tag.file_slice.log_files:
            rows = pc.index_in(live_keys(read, tag.file_slice).combine_chunks(), value_set=keys)
        found += np.bincount(np.asarray(rows.drop_null()), minlength=len(keys))
    return found


def _become_the_same(plan: UnitPlan, rows: pa.Table) -> bool:
    """Return whether rows of one key all go, or all become one and the same row."""
    if plan.delete_only or (
        DELETE_FLAG in rows.column_names and pc.all(rows.column(DELETE_FLAG).fill_null(False)).as_py()
    ):
        return True
    names = [name for name in rows.column_names if name != INSERT_FLAG]
    return len({repr(row) for row in rows.select(names).to_pylist()}) == 1

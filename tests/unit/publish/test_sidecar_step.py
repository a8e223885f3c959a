"""The next sidecar made of the one before equals what merging all logs gives, batch after batch."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hudi_engine.format.merge.slice_reader import SliceDelta, resolve_delta
from hudi_engine.format.merge.table_reader import read_context
from hudi_engine.table.snapshot.sidecar import LogBatch, has_steps, next_step
from hudi_engine.table.state import TableState

from tests.helpers.handmade import HandmadeTable, with_meta

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
STORED = 20
"""Keys below this are in the base file, others in logs only."""


def rows(keys, ts, v):
    return pa.table({"id": [str(key) for key in keys], "ts": ts, "v": [v] * len(keys)}, schema=SCHEMA)


def table_of(tmp_path, ordered):
    properties = {"hoodie.table.precombine.field": "ts"} if ordered else {}
    table = HandmadeTable(tmp_path / "t", SCHEMA, merge_on_read=True, properties=properties)
    base = rows(range(STORED), [10] * STORED, "base")
    return table, base, table.commit({"": {"f-0": base}})


def content(delta):
    return delta.masked_positions.to_pylist(), sorted(map(str, delta.live.to_pylist()))


def all_logs(table):
    state = TableState.load(table.storage)
    (file_slice,) = state.view(None).latest_slices()
    return resolve_delta(read_context(table.storage, state.config, state.timeline), file_slice)


def batch_of(keys, changes, written, deletes):
    """A log batch; the base file holds key n in row n."""
    known = [(key, number) for number, key in enumerate(keys) if key < STORED]
    hits, numbers = (np.array([pair[place] for pair in known], np.int64) for place in (0, 1))
    return LogBatch(changes, np.full(len(keys), deletes), written, hits, numbers, deletes_win=deletes)


@pytest.mark.parametrize("ordered", [False, True], ids=["newest commit wins", "greater ts wins"])
@pytest.mark.parametrize("seed", range(3))
def test_steps_over_random_batches_give_what_all_logs_give(tmp_path, ordered, seed):
    table, base, first = table_of(tmp_path, ordered)
    chance = random.Random(seed)
    before = SliceDelta(pa.array([], pa.int64()), with_meta(base.slice(0, 0), "", "f-0", first))
    gone: set[int] = set()
    for step in range(9):
        keys = chance.sample(range(STORED + 8), 7)
        instant, deletes = table.next_instant(), chance.random() < 0.3
        # A row of a deleted key goes to a log only when it is not older than the row was.
        ts = [100 + step if key in gone else chance.randrange(5, 15) for key in keys]
        changes = rows(keys, ts, f"at {step}")
        stamped = with_meta(changes, "", "f-0", instant)
        changes = changes.append_column("_hoodie_record_key", changes.column("id"))
        if deletes:
            gone.update(keys)
            blocks = table.delete_blocks("", [str(key) for key in keys], instant)
        else:
            blocks = table.data_blocks("", "f-0", stamped.select(SCHEMA.names), instant)
        table.complete(instant, [table.append_log("", "f-0", first, blocks, instant)])
        batch = batch_of(keys, changes, None if deletes else stamped, deletes)
        before = next_step(table.config, before, batch, base.select).taken(before, batch)
        assert content(before) == content(all_logs(table)), f"step {step}"


@pytest.mark.parametrize(
    "properties",
    [
        {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"},
        {"hoodie.engine.changelog": "true"},
    ],
    ids=["partial updates", "changelog"],
)
def test_tables_whose_logs_say_more_than_the_newest_state_of_a_key_have_no_steps(tmp_path, properties):
    table = HandmadeTable(tmp_path / "t", SCHEMA, merge_on_read=True, properties=properties)
    assert not has_steps(table.config)


def test_a_key_that_the_base_file_holds_twice_makes_no_step(tmp_path):
    table, base, first = table_of(tmp_path, ordered=False)
    before = SliceDelta(pa.array([], pa.int64()), with_meta(base.slice(0, 0), "", "f-0", first))
    changes = rows([1], [11], "new").append_column("_hoodie_record_key", pa.array(["1"]))
    batch = LogBatch(changes, np.zeros(1, bool), None, np.array([1, 2]), np.array([0, 0]))
    assert next_step(table.config, before, batch, base.select) is None

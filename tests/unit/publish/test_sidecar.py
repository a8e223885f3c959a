from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine.format.merge.slice_reader import SliceDelta
from hudi_engine.format.schema.meta_fields import with_meta_columns
from hudi_engine.table.snapshot.derive import make_in_threads
from hudi_engine.table.snapshot.manifest import live_manifest_files, newest_manifest, publish
from hudi_engine.table.snapshot.publication import obsolete_sidecars
from hudi_engine.table.snapshot.sidecar import (
    CHUNK_BITS,
    CHUNK_COLUMN,
    WORDS_COLUMN,
    mask_table,
    parse_sidecar,
    read_mask_words,
    read_sidecar,
    sidecar_schema,
    write_sidecar,
)
from hudi_engine.table.snapshot.snapshot_files import DELTA_LABEL, MASKED_LABEL

from tests.helpers.hudi_rs import rows_by_hudi_rs
from tests.unit.publish.conftest import SCHEMA, log_update, rows


def sidecar_files(storage, partition):
    """Sidecars of a partition folder."""
    listed = storage.list(partition)
    return [
        side
        for each in listed
        if not each.is_dir and (side := parse_sidecar(each.name, partition, each)) is not None
    ]


def masked_rows(mask):
    """Row numbers of a mask, the way the snapshot view tests them."""
    found = []
    for chunk, words in zip(mask[CHUNK_COLUMN].to_pylist(), mask[WORDS_COLUMN].to_pylist(), strict=True):
        for row in range(1 << CHUNK_BITS):
            if (words[row >> 6] >> (row & 63)) & 1:
                found.append((chunk << CHUNK_BITS) + row)
    return found


@pytest.mark.parametrize(
    "positions", [[0], [63, 64], [4095, 4096], [5, 3], [8191, 100_000_000_000], list(range(200))]
)
def test_a_mask_holds_exactly_the_positions_given(positions):
    mask = mask_table(pa.array(positions, pa.int64()), sidecar_schema(SCHEMA))
    assert masked_rows(mask) == sorted(positions)


def test_a_mask_of_nothing_has_no_rows():
    assert mask_table(pa.array([], pa.int64()), sidecar_schema(SCHEMA)).num_rows == 0


@pytest.mark.parametrize("positions", [[0], [63, 64], [4095, 4096], [9000, 5, 3], list(range(200)), []])
def test_words_of_a_sidecar_hold_exactly_the_positions_that_it_masks(mor, positions):
    schema = with_meta_columns(SCHEMA)
    delta = SliceDelta(pa.array(positions, pa.int64()), schema.empty_table())
    live = SliceDelta(delta.masked_positions, pa.Table.from_pylist([{"id": 1}], schema))
    write_sidecar(mor.storage, "side", schema, live)
    words = read_mask_words(mor.storage, "side", 1000)
    found = [64 * n + bit for n, word in enumerate(words.tolist()) for bit in range(64) if word >> bit & 1]
    assert found == sorted(positions)


def test_a_mask_of_more_words_than_may_be_is_not_made(mor):
    schema = with_meta_columns(SCHEMA)
    write_sidecar(
        mor.storage,
        "side",
        schema,
        SliceDelta(pa.array([100_000_000_000], pa.int64()), schema.empty_table()),
    )
    assert read_mask_words(mor.storage, "side", 1000) is None


def delta_table(table):
    """Content of the one sidecar of a table."""
    (path,) = [path for path in live_manifest_files(table.storage) if path.endswith(".delta")]
    return pq.read_table(table.path / path, partitioning=None), path


def test_a_sidecar_holds_the_rows_of_the_logs_and_masks_what_they_replace_or_delete(mor):
    log_update(mor, 2, 9)
    instant = mor.next_instant()
    blocks = mor.delete_blocks("dt=x", ["3"], instant)
    mor.complete(instant, [mor.append_log("dt=x", "f-0", mor.first, blocks, instant)])
    publish(mor.storage)
    content, path = delta_table(mor)
    live = content.filter(pa.compute.is_null(content[CHUNK_COLUMN]))
    assert live.select(["id", "dt", "v"]).sort_by("id").to_pylist() == rows(2, 9, v="log").to_pylist()
    assert masked_rows(content.filter(pa.compute.is_valid(content[CHUNK_COLUMN]))) == [1, 2]
    assert parse_sidecar(path, "dt=x").instant == instant


def test_mask_and_live_rows_lie_in_row_groups_of_their_own(mor):
    log_update(mor, 2, 9)
    publish(mor.storage)
    footer = pq.read_metadata(mor.path / delta_table(mor)[1])
    chunk = footer.schema.names.index(CHUNK_COLUMN)
    nulls = [footer.row_group(n).column(chunk).statistics.null_count for n in range(footer.num_row_groups)]
    assert nulls == [0, 2]


def test_a_log_of_a_group_without_base_file_needs_no_mask(mor):
    instant = mor.next_instant()
    blocks = mor.data_blocks("dt=x", "new-0", rows(7, v="log"), instant)
    mor.complete(instant, [mor.append_log("dt=x", "new-0", instant, blocks, instant)])
    publish(mor.storage)
    content, _ = delta_table(mor)
    assert content["id"].to_pylist() == [7]
    assert content[CHUNK_COLUMN].null_count == 1


def test_logs_that_change_nothing_get_no_sidecar(mor):
    instant = mor.next_instant()
    blocks = mor.delete_blocks("dt=x", ["99"], instant)
    mor.complete(instant, [mor.append_log("dt=x", "f-0", mor.first, blocks, instant)])
    assert publish(mor.storage).files == 2


def test_labels_tell_plain_masked_and_delta_files_and_pair_them(mor):
    log_update(mor, 2)
    publish(mor.storage)
    labels = {
        entry.uri.rsplit("/", 2)[1] + entry.uri[-6:]: entry.modified_ms
        for entry in newest_manifest(mor.storage).entries
    }
    assert labels["dt=x.delta"] - DELTA_LABEL == labels["dt=xarquet"] - MASKED_LABEL
    assert 0 < labels["dt=yarquet"] < MASKED_LABEL


def built_for(table):
    """Publish and return the file groups whose sidecars were built."""
    built = []

    def run(tasks):
        built.extend(task.file_slice.file_id for task in tasks)
        return make_in_threads(tasks)

    publish(table.storage, run_sidecars=run)
    return built


def test_only_slices_whose_logs_changed_are_merged_again(mor):
    log_update(mor, 2)
    assert built_for(mor) == ["f-0"]
    log_update(mor, 4, partition="dt=y", file_id="g-0", dt="y")
    assert built_for(mor) == ["g-0"]
    mor.commit({"dt=x": {"h-0": rows(8)}})
    assert built_for(mor) == []
    assert len([path for path in live_manifest_files(mor.storage) if path.endswith(".delta")]) == 2


def test_a_block_that_was_in_flight_is_merged_when_its_write_completes_without_touching_the_file(mor):
    pending, other = mor.next_instant(), mor.next_instant()
    stat = mor.append_log(
        "dt=x", "f-0", mor.first, mor.data_blocks("dt=x", "f-0", rows(1, v="log"), pending), pending
    )
    mor.storage.create(f".hoodie/{pending}.deltacommit.inflight", b"")
    mor.complete(
        other,
        [
            mor.append_log(
                "dt=x", "f-0", mor.first, mor.data_blocks("dt=x", "f-0", rows(2, v="log"), other), other
            )
        ],
    )
    publish(mor.storage)
    assert delta_table(mor)[0]["id"].drop_null().to_pylist() == [2]
    mor.complete(pending, [stat])
    publish(mor.storage)
    assert sorted(delta_table(mor)[0]["id"].drop_null().to_pylist()) == [1, 2]


def test_a_compacted_slice_has_no_sidecar(mor):
    log_update(mor, 2)
    publish(mor.storage)
    mor.commit({"dt=x": {"f-0": rows(1, 2, 3)}})
    publish(mor.storage)
    assert not [path for path in live_manifest_files(mor.storage) if path.endswith(".delta")]


def test_clean_may_delete_sidecars_whose_successor_is_old_enough_and_never_a_live_one(mor):
    instants = []
    for number in (1, 2, 3):
        instants.append(log_update(mor, number))
        publish(mor.storage)
    first, second, third = sorted(sidecar_files(mor.storage, "dt=x"), key=lambda each: each.instant)
    assert obsolete_sidecars(mor.storage, ["dt=x", "dt=y"], instants[0]) == []
    assert obsolete_sidecars(mor.storage, ["dt=x"], instants[1]) == []
    assert obsolete_sidecars(mor.storage, ["dt=x"], instants[2]) == [first.path]
    assert obsolete_sidecars(mor.storage, ["dt=x"], "9") == sorted([first.path, second.path])
    assert third.path in live_manifest_files(mor.storage)


def test_a_sidecar_that_was_never_listed_goes_when_it_is_old(mor):
    log_update(mor, 1)
    publish(mor.storage)
    (live,) = sidecar_files(mor.storage, "dt=x")
    orphan = "dt=x/f-0_5-0-1_20260101000009000.delta"
    mor.storage.create(orphan, b"never listed")
    assert obsolete_sidecars(mor.storage, ["dt=x"], "20260101000009000") == []
    assert obsolete_sidecars(mor.storage, ["dt=x"], "20260101000010000") == [orphan]
    assert live.path in live_manifest_files(mor.storage)


def test_the_sidecar_of_a_write_that_was_rolled_back_ends_no_other(mor):
    log_update(mor, 1)
    publish(mor.storage)
    (first,) = sidecar_files(mor.storage, "dt=x")
    undone, kept = mor.next_instant(), mor.next_instant()
    mor.storage.create(f"dt=x/f-0_5-0-1_{undone}.delta", b"of no commit")
    log_update(mor, 2)
    publish(mor.storage)
    assert obsolete_sidecars(mor.storage, ["dt=x"], kept) == [f"dt=x/f-0_5-0-1_{undone}.delta"]
    assert first.path in obsolete_sidecars(mor.storage, ["dt=x"], "9")


def test_the_sidecar_of_a_write_that_is_under_way_stays(mor):
    pending = mor.next_instant()
    mor.storage.create(f".hoodie/{pending}.deltacommit.inflight", b"")
    mor.storage.create(f"dt=x/f-0_5-0-1_{pending}.delta", b"to be listed")
    log_update(mor, 2)
    publish(mor.storage)
    assert obsolete_sidecars(mor.storage, ["dt=x"], "9") == []


@pytest.mark.parametrize(
    "name",
    [
        "f-0_0-1-1_1.parquet",
        ".f-0_1.log.1_0-1-1",
        "f_0_1-0-1_1.delta",
        "x.delta",
        ".hoodie_partition_metadata",
    ],
)
def test_other_files_are_no_sidecars(name):
    assert parse_sidecar(name, "") is None


def test_hudi_rs_reads_a_table_with_sidecars_as_if_they_were_not_there(mor):
    log_update(mor, 2, 9)
    publish(mor.storage)
    assert sidecar_files(mor.storage, "dt=x")
    expected = [(1, "x", "a"), (2, "x", "log"), (3, "x", "a"), (4, "y", "a"), (9, "x", "log")]
    assert rows_by_hudi_rs(str(mor.path), ["id", "dt", "v"]) == expected


def test_a_sidecar_is_read_back_as_it_was_written(mor):
    live = rows(5, 7, v="log")
    delta = SliceDelta(pa.array([0, 63, 64, 4095, 4096, 100_000], pa.int64()), live)
    assert write_sidecar(mor.storage, "dt=x/s.delta", SCHEMA, delta) > 0
    found = read_sidecar(mor.storage, "dt=x/s.delta", SCHEMA)
    assert found.masked_positions.to_pylist() == delta.masked_positions.to_pylist()
    assert found.live.equals(live)


def test_a_sidecar_that_masks_nothing_is_read_back_too(mor):
    live = pa.Table.from_pylist([dict.fromkeys(SCHEMA.names)], schema=SCHEMA)
    write_sidecar(mor.storage, "dt=x/l.delta", SCHEMA, SliceDelta(pa.array([], pa.int64()), live))
    found = read_sidecar(mor.storage, "dt=x/l.delta", SCHEMA)
    assert (len(found.masked_positions), found.live.num_rows) == (0, 1)

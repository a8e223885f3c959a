"""Which log blocks count."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.format.logformat.format import BlockType, HeaderKey
from hudi_engine.format.logformat.writer import encode_block, encode_rollback_block
from hudi_engine.format.merge.log_scanner import scan_slice
from hudi_engine.format.merge.slice_reader import read_slice, scan_logs
from hudi_engine.format.storage import open_storage
from slices import LATEST, Committed, SliceBuilder, config, data_rows, deletes, instant, row, upserts

from tests.helpers.s3_server import S3Server

SETTINGS = config(LATEST)


def _values(builder: SliceBuilder, **options: object) -> dict[str, int]:
    rows = read_slice(builder.context(SETTINGS, **options), builder.build())
    return {found["id"]: found["a"] for found in data_rows(rows)}


@pytest.fixture
def two_updates(builder: SliceBuilder) -> SliceBuilder:
    """Key ``a`` is 1, then 2, then 3."""
    return (
        builder.add_base([row("a", a=1)])
        .add_log(upserts([row("a", a=2)], 2))
        .add_log(upserts([row("a", a=3)], 3))
    )


def test_later_blocks_win(two_updates: SliceBuilder) -> None:
    assert _values(two_updates) == {"a": 3}


def test_blocks_of_uncommitted_instants_are_not_seen(two_updates: SliceBuilder) -> None:
    assert _values(two_updates, is_committed=Committed(frozenset([instant(3)]))) == {"a": 2}


def test_blocks_after_the_moment_of_the_read_are_not_seen(two_updates: SliceBuilder) -> None:
    assert _values(two_updates, as_of=instant(2)) == {"a": 2}
    assert _values(two_updates, as_of=instant(1)) == {"a": 1}


def test_a_rollback_takes_back_the_blocks_of_its_target_wherever_they_are(two_updates: SliceBuilder) -> None:
    two_updates.add_log(
        encode_rollback_block(instant(4), instant(2)) + encode_rollback_block(instant(5), instant(3))
    )

    assert _values(two_updates) == {"a": 1}


def test_blocks_behind_a_rollback_in_the_same_file_count(builder: SliceBuilder) -> None:
    builder.add_base([row("a", a=1)])
    builder.add_log(
        upserts([row("a", a=2)], 2),
        encode_rollback_block(instant(4), instant(2)),
        upserts([row("a", a=3)], 3),
    )

    assert _values(builder) == {"a": 3}


def test_a_torn_block_is_skipped_and_counted(builder: SliceBuilder) -> None:
    builder.add_base([row("a", a=1)])
    builder.add_log(upserts([row("a", a=2)], 2), upserts([row("a", a=9)], 3)[:-2])

    scan = scan_slice(builder.context(SETTINGS), builder.build())

    assert _values(builder) == {"a": 2}
    assert (scan.total_blocks, scan.corrupt_blocks, scan.rollback_blocks) == (1, 1, 0)


def test_change_data_blocks_hold_no_rows_of_the_table(builder: SliceBuilder) -> None:
    cdc = encode_block(BlockType.CDC_DATA, [(HeaderKey.INSTANT_TIME, instant(2))], b"anything")
    builder.add_base([row("a", a=1)]).add_log(cdc + upserts([row("a", a=2)], 2))

    assert _values(builder) == {"a": 2}


def test_an_hfile_block_that_is_none_is_refused_but_does_not_matter_for_base_files(
    builder: SliceBuilder,
) -> None:
    header = [(HeaderKey.INSTANT_TIME, instant(2)), (HeaderKey.SCHEMA, "{}")]
    hfile = encode_block(BlockType.HFILE_DATA, header, b"")
    builder.add_base([row("a", a=1)]).add_log(hfile)

    with pytest.raises(CorruptTableError, match="HFile"):
        _values(builder)
    assert data_rows(read_slice(builder.context(SETTINGS), builder.build(), merge_type="base_only")) == [
        row("a", a=1)
    ]


def _packed(rows: list[dict], number: int, *packs: int) -> bytes:
    header = [(HeaderKey.COMPACTED_BLOCK_TIMES, ",".join(instant(each) for each in packs))]
    return upserts(rows, number, extra_header=header)


def test_a_log_compaction_replaces_the_blocks_it_packed_at_the_place_of_the_newest(
    builder: SliceBuilder,
) -> None:
    builder.add_base([row("a", a=1), row("b", a=1), row("c", a=1)])
    builder.add_log(upserts([row("a", a=2), row("b", a=2)], 2)).add_log(upserts([row("a", a=3)], 3))
    builder.add_log(upserts([row("c", a=4), row("b", a=4)], 4))
    builder.add_log(_packed([row("a", a=30), row("b", a=20)], 5, 3, 2))

    assert _values(builder) == {"a": 30, "b": 4, "c": 4}
    assert _values(builder, as_of=instant(4)) == {"a": 3, "b": 4, "c": 4}
    assert _values(builder, is_committed=Committed(frozenset([instant(5)]))) == {"a": 3, "b": 4, "c": 4}


def test_a_log_compaction_of_a_log_compaction_stands_for_all(builder: SliceBuilder) -> None:
    builder.add_log(upserts([row("a", a=2)], 2)).add_log(upserts([row("a", a=3)], 3))
    builder.add_log(_packed([row("a", a=30)], 4, 3, 2)).add_log(upserts([row("b", a=5)], 5))
    builder.add_log(_packed([row("a", a=300), row("b", a=500)], 6, 5, 4))

    assert _values(builder) == {"a": 300, "b": 500}


def test_a_log_compaction_whose_originals_have_gone_counts_by_itself(builder: SliceBuilder) -> None:
    builder.add_base([row("a", a=1)]).add_log(_packed([row("a", a=30)], 5, 3, 2)).add_log(
        upserts([row("b", a=6)], 6)
    )

    assert _values(builder) == {"a": 30, "b": 6}


def test_large_logs_are_read_block_by_block(two_updates: SliceBuilder) -> None:
    two_updates.add_log(deletes(["a"], 4) + upserts([row("b", a=5)], 4))

    assert _values(two_updates, memory_limit_bytes=1) == _values(two_updates) == {"b": 5}


def test_a_large_log_in_an_object_store_takes_few_requests(
    builder: SliceBuilder, s3_server: S3Server
) -> None:
    """One opens it, one reads each border of blocks with what lies around it, and one each block's content."""
    texts = [random.Random(number).randbytes(1_500_000).hex() for number in (1, 2)]
    blocks = [upserts([row(text[:9], b=text)], 2 + number) for number, text in enumerate(texts)]
    builder.add_log(*blocks, deletes(["gone"], 4))
    storage = open_storage(f"{s3_server.new_bucket()}/t")
    storage.create(builder.logs[0].path, (builder.folder / builder.logs[0].path).read_bytes())
    context = replace(builder.context(SETTINGS, memory_limit_bytes=1), storage=storage)

    with s3_server.counted() as requests:
        found = read_slice(context, builder.build())

    assert sorted(found["b"].to_pylist()) == sorted(texts)
    assert len(requests) <= 9, requests


def test_a_log_that_has_gone_says_so(two_updates: SliceBuilder) -> None:
    (two_updates.folder / two_updates.logs[0].path).unlink()

    with pytest.raises(TimelineError, match="log.1.*was deleted.*Read the table again"):
        _values(two_updates)


def test_what_was_read_is_counted(two_updates: SliceBuilder) -> None:
    records = scan_logs(two_updates.add_log(deletes(["a", "b"], 4)).context(SETTINGS), two_updates.build())

    assert (records.total_records, records.scan.total_blocks) == (4, 3)
    assert dict(zip(records.winners.keys.to_pylist(), records.winners.deleted, strict=True)) == {
        "a": True,
        "b": True,
    }


def test_a_read_may_end_at_the_first_block_of_a_later_instant(builder: SliceBuilder) -> None:
    builder.add_base([row("a", a=1), row("b", a=1)]).add_log(upserts([row("a", a=2)], 2))
    builder.add_log(encode_rollback_block(instant(5), instant(3))).add_log(upserts([row("b", a=4)], 4))

    ends = {
        time: read_slice(builder.context(SETTINGS, stops_after=time), builder.build())
        for time in (instant(4), None)
    }

    assert [found["a"] for found in data_rows(ends[instant(4)])] == [2, 1]
    assert [found["a"] for found in data_rows(ends[None])] == [2, 4]

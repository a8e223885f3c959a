"""New rows go to small files that have room, then to new files."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hudi_engine.format.config.enums import TableType
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import LogFile
from hudi_engine.table.handles.base_file_options import FileSize
from hudi_engine.table.state import TableState
from hudi_engine.table.write.place.shares import share_inserts

from tests.unit.services import tables

MB = 1024 * 1024
T = "20260101000000000"


@dataclass
class Config:
    table_type: TableType
    keeps_operations: bool = False


@dataclass
class Context:
    """The part of a write that packing looks at."""

    config: Config
    options: object
    file_size: FileSize = FileSize(120 * MB, None, 1024, "zstd")


def context(table_type="COPY_ON_WRITE", **options):
    named = {key.replace("_", "."): value for key, value in options.items()}
    return Context(Config(TableType(table_type)), resolve_options(named))


def slice_of(file_id, size, logs=0, log_bytes=10):
    base = BaseFile("p", file_id, "0-0-0", T, "parquet", size, 0)
    return FileSlice(
        "p",
        file_id,
        T,
        base,
        tuple(LogFile("p", file_id, T, n, "0-0-0", False, log_bytes, 0) for n in range(1, logs + 1)),
    )


def shares(found):
    return [(share.file_slice.file_id if share.file_slice else None, share.rows) for share in found]


def test_the_room_of_a_small_file_is_target_size_less_its_size_over_the_row_size():
    found = share_inserts(context(), [slice_of("a", 119 * MB - 1)], 5000)
    assert shares(found) == [(None, 5000)]
    found = share_inserts(context(), [slice_of("a", 20 * MB)], 200_000)
    assert shares(found) == [("a", 100 * 1024), (None, 200_000 - 100 * 1024)]


def test_the_smallest_file_is_filled_first():
    found = share_inserts(context(), [slice_of("big", 50 * MB), slice_of("small", MB)], 10)
    assert shares(found) == [("small", 10)]


def test_a_limit_of_zero_switches_packing_off():
    found = share_inserts(context(hoodie_parquet_small_file_limit="0"), [slice_of("a", MB)], 10)
    assert shares(found) == [(None, 10)]


def test_file_groups_under_compaction_or_clustering_take_no_rows():
    found = share_inserts(context(), [slice_of("a", MB)], 10, frozen={("p", "a")})
    assert shares(found) == [(None, 10)]


def test_merge_on_read_offers_its_smallest_file_only_its_logs_counted():
    slices = [slice_of("logged", MB, logs=1), slice_of("b", 3 * MB), slice_of("a", 2 * MB)]
    assert shares(share_inserts(context("MERGE_ON_READ"), slices, 10)) == [("logged", 10)]
    slices = [slice_of("logged", MB, logs=1, log_bytes=100), slice_of("a", MB)]
    assert shares(share_inserts(context("MERGE_ON_READ"), slices, 10)) == [("a", 10)]


def test_logs_count_by_what_they_become_in_a_base_file():
    slices = [slice_of("logged", MB, logs=1, log_bytes=2 * MB), slice_of("b", 2 * MB)]
    assert shares(share_inserts(context("MERGE_ON_READ"), slices, 10)) == [("logged", 10)]
    whole = context("MERGE_ON_READ", **{"hoodie.logfile.to.parquet.compression.ratio": "1.0"})
    assert shares(share_inserts(whole, slices, 10)) == [("b", 10)]


def test_the_room_of_a_slice_is_that_of_its_compacted_file():
    large = {"hoodie.engine.insert.packing.max.bytes": str(200 * MB)}
    logged = [slice_of("a", 20 * MB, logs=2, log_bytes=100 * MB)]
    (taken, _) = share_inserts(context("MERGE_ON_READ", **large), logged, 200_000)
    assert (taken.file_slice.file_id, taken.rows) == ("a", 30 * 1024)


def test_logs_that_keep_every_change_are_not_ended_by_new_rows():
    changelog = context("MERGE_ON_READ")
    changelog.config.keeps_operations = True
    slices = [slice_of("logged", MB, logs=1), slice_of("a", 2 * MB)]
    assert shares(share_inserts(changelog, slices, 10)) == [("a", 10)]


@pytest.mark.parametrize(("size", "target"), [(3 * MB, "a"), (5 * MB, None)])
def test_merge_on_read_does_not_rewrite_a_large_base_file_for_a_few_rows(size, target):
    assert shares(share_inserts(context("MERGE_ON_READ"), [slice_of("a", size)], 10)) == [(target, 10)]


def test_the_size_up_to_which_a_base_file_of_merge_on_read_is_rewritten_can_be_set():
    options = {"hoodie.engine.insert.packing.max.bytes": str(6 * MB)}
    assert shares(share_inserts(context("MERGE_ON_READ", **options), [slice_of("a", 5 * MB)], 10)) == [
        ("a", 10)
    ]
    options = {"hoodie.engine.insert.packing.max.bytes": "0"}
    assert shares(share_inserts(context("MERGE_ON_READ", **options), [slice_of("a", MB)], 10)) == [(None, 10)]


def test_rows_have_the_estimated_size_until_a_commit_of_some_size_has_told_theirs(tmp_path):
    table = tables.copy_on_write(tmp_path / "t", 1)
    state = TableState.load(table.storage)
    estimated = resolve_options({"hoodie.copyonwrite.record.size.estimate": 77})
    assert state.average_row_bytes(estimated) == 77
    room = FileSize.from_options(estimated, state.average_row_bytes(estimated), "zstd").room_in
    assert room(0) == 120 * MB // 77

"""Which slices are read with their logs when keys are looked up."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.format.timeline.instant import Instant
from hudi_engine.table.lookup.log_keys import with_log_keys
from hudi_engine.table.state import TableState

from tests.helpers.handmade import HandmadeTable

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int32())])


@pytest.mark.parametrize(
    ("group", "counts", "expected"),
    [
        ("g-0", {"num_writes": 1, "num_update_writes": 1}, False),
        ("g-0", {"num_deletes": 1}, False),
        ("g-0", {"num_writes": 2, "num_update_writes": 1, "num_inserts": 1}, True),
        ("g-0", {}, True),
        ("00000003-0", {"num_writes": 1, "num_update_writes": 1}, True),
    ],
    ids=["updates", "deletes", "inserts", "counts-nothing", "bucket-index"],
)
def test_a_log_that_may_hold_new_keys_is_read(
    tmp_path: Path, group: str, counts: dict[str, int], expected: bool
) -> None:
    made = HandmadeTable(tmp_path / "t", SCHEMA, merge_on_read=True)
    rows = pa.table({"id": ["a"], "v": [1]}).cast(SCHEMA)
    base = made.commit({"": {group: rows}})
    instant = made.next_instant()
    stat = made.append_log("", group, base, made.data_blocks("", group, rows, instant), instant)
    made.complete(instant, [dataclasses.replace(stat, **counts)])  # type: ignore[arg-type]
    state = TableState.load(made.storage)
    found = with_log_keys(state.timeline, state.view().latest_slices())
    assert found == (frozenset({("", group)}) if expected else frozenset())


def test_a_log_that_no_active_commit_names_is_read(tmp_path: Path) -> None:
    made = HandmadeTable(tmp_path / "t", SCHEMA, merge_on_read=True)
    rows = pa.table({"id": ["a"], "v": [1]}).cast(SCHEMA)
    base = made.commit({"": {"g-0": rows}})
    archived = made.next_instant()
    made.append_log("", "g-0", base, made.data_blocks("", "g-0", rows, archived), archived)
    made.commit({"": {"h-0": rows}})
    state = TableState.load(made.storage)
    assert with_log_keys(state.timeline, state.view().latest_slices()) == {("", "g-0")}


def _with_appended_log(made: HandmadeTable, base: str, *counts: dict[str, int]) -> None:
    """Let several commits write into one log file, one behind the other, as Hudi does where a store appends to files."""
    rows = pa.table({"id": ["a"], "v": [1]}).cast(SCHEMA)
    log = ""
    for count in counts:
        instant = made.next_instant()
        blocks = made.data_blocks("", "g-0", rows, instant)
        if log:
            with (made.path / log).open("ab") as file:
                file.write(b"".join(blocks))
        else:
            log = made.append_log("", "g-0", base, blocks, instant).path or ""
        stat = WriteStat(
            file_id="g-0",
            path=log,
            partition_path="",
            file_size_in_bytes=(made.path / log).stat().st_size,
            total_write_bytes=sum(map(len, blocks)),
        )
        made.complete(instant, [dataclasses.replace(stat, **count)])  # type: ignore[arg-type]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commits that are read."""
    found: list[str] = []
    read = Timeline.commit_metadata

    def noted(self: Timeline, instant: Instant) -> CommitMetadata:
        found.append(instant.requested_time)
        return read(self, instant)

    monkeypatch.setattr(Timeline, "commit_metadata", noted)
    return found


INSERT, UPDATE = {"num_inserts": 1}, {"num_update_writes": 1}


@pytest.mark.parametrize(
    ("counts", "expected"),
    [((INSERT, UPDATE), True), ((INSERT, UPDATE, UPDATE), True), ((UPDATE, UPDATE), False)],
    ids=["the older one", "the oldest one", "neither"],
)
def test_all_commits_that_wrote_into_a_log_may_have_brought_its_keys(
    tmp_path: Path, counts: tuple[dict[str, int], ...], expected: bool
) -> None:
    made = HandmadeTable(tmp_path / "t", SCHEMA, merge_on_read=True)
    base = made.commit({"": {"g-0": pa.table({"id": ["a"], "v": [1]}).cast(SCHEMA)}})
    _with_appended_log(made, base, *counts)
    state = TableState.load(made.storage)
    found = with_log_keys(state.timeline, state.view().latest_slices())
    assert found == (frozenset({("", "g-0")}) if expected else frozenset())


def test_no_commit_is_read_that_is_older_than_the_first_bytes_of_the_logs(
    tmp_path: Path, reads: list[str]
) -> None:
    made = HandmadeTable(tmp_path / "t", SCHEMA, merge_on_read=True)
    rows = pa.table({"id": ["a"], "v": [1]}).cast(SCHEMA)
    base = made.commit({"": {"g-0": rows}})
    for number in range(3):
        made.commit({"": {f"h-{number}": rows}})
    _with_appended_log(made, base, UPDATE, UPDATE)
    made.commit({"": {"i-0": rows}})
    state = TableState.load(made.storage)
    slices = state.view().latest_slices()
    reads.clear()
    assert with_log_keys(state.timeline, slices) == frozenset()
    assert len(reads) == 3


def test_a_log_into_which_an_archived_commit_may_have_written_is_read(tmp_path: Path) -> None:
    made = HandmadeTable(tmp_path / "t", SCHEMA, merge_on_read=True)
    base = made.commit({"": {"g-0": pa.table({"id": ["a"], "v": [1]}).cast(SCHEMA)}})
    _with_appended_log(made, base, INSERT, UPDATE)
    for instant in TableState.load(made.storage).timeline.completed_writes[:2]:
        (made.path / ".hoodie" / instant.file_name).unlink()
    state = TableState.load(made.storage)
    assert with_log_keys(state.timeline, state.view().latest_slices()) == {("", "g-0")}

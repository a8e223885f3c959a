"""Facts of tables that Apache Hudi wrote, against what Apache Hudi and hudi-rs say of them."""

from __future__ import annotations

import os
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from hudi import HudiReadOptions, HudiTableBuilder
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.logformat.reader import read_blocks
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.inspect import commit_facts, file_facts, instant_facts, moment_of, partition_facts
from hudi_engine.table.services.due import services_due, table_stats
from hudi_engine.table.state import TableState

from tests.golden.golden import NAMES, description, unpack
from tests.helpers.handmade import HandmadeTable
from tests.unit.services.tables import copy_on_write

DEFAULTS = resolve_options(None)
UNKNOWN_TO_HUDI_RS = ("v4_", "v5_")
COUNTED = [
    "v6_cow_nonpartitioned_upsert_h0150",
    "v6_cow_complex_delete_h0150",
    "v9_cow_nonpartitioned_upsert_h120",
]


def golden(name: str, folder: Path) -> TableState:
    return TableState.load(open_storage(str(unpack(name, folder))))


def first_instant(log: Path) -> str:
    """The instant of the first block of a log."""
    return next(read_blocks(log.read_bytes())).instant_time


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(UNKNOWN_TO_HUDI_RS)])
def test_the_files_of_a_snapshot_are_those_that_hudi_rs_reads(name: str, tmp_path: Path) -> None:
    state = golden(name, tmp_path)

    slices = HudiTableBuilder.from_base_uri(str(tmp_path / name)).build().get_file_slices(HudiReadOptions())
    theirs = {each.base_file_relative_path() for each in slices if each.base_file_name}

    assert {each.path for each in file_facts(state) if each.kind == "base"} == theirs


@pytest.mark.parametrize("name", [name for name in NAMES if "mor" in name])
def test_the_logs_of_an_earlier_state_are_those_with_a_block_of_it(name: str, tmp_path: Path) -> None:
    state = golden(name, tmp_path)
    logs = [each.path for each in file_facts(state) if each.kind == "log"]
    first = {path: first_instant(tmp_path / name / path) for path in logs}

    for write in state.timeline.completed_writes:
        listed = {each.path for each in file_facts(state, as_of=write.requested_time) if each.kind == "log"}
        assert not {path for path in listed & set(logs) if first[path] > write.requested_time}
        same_slices = {path for path in logs if first[path] <= write.requested_time}
        assert same_slices <= listed


def test_a_log_that_a_later_write_appended_to_is_there_before(tmp_path: Path) -> None:
    state = golden("v6_mor_simple_deletes_h0150", tmp_path)
    first, *later = state.timeline.completed_writes

    def logs() -> set[str]:
        facts = file_facts(TableState.load(state.storage), as_of=first.requested_time)
        return {each.path for each in facts if each.kind == "log"}

    assert logs() == set()
    for write in later:
        told = Path(state.storage.base) / ".hoodie" / write.file_name
        told.write_text(told.read_text().replace('"logOffset" : 0', '"logOffset" : 100'))
    assert logs()


@pytest.mark.parametrize("name", NAMES)
def test_files_and_partitions_and_stats_count_the_same_bytes_as_the_disk(name: str, tmp_path: Path) -> None:
    state = golden(name, tmp_path)
    files = file_facts(state)
    stats = table_stats(state, DEFAULTS)

    on_disk = {each.path: (tmp_path / name / each.path).stat().st_size for each in files}
    kinds = Counter(each.kind for each in files)

    assert {each.path: each.size_bytes for each in files} == on_disk
    assert stats.base_bytes + stats.log_bytes == sum(on_disk.values())
    assert (stats.base_files, stats.log_files) == (kinds["base"], kinds["log"])
    assert list(stats.partitions) == partition_facts(state.view().latest_slices())


@pytest.mark.parametrize("name", NAMES)
def test_counted_rows_are_the_rows_that_apache_hudi_reads(name: str, tmp_path: Path) -> None:
    stats = table_stats(golden(name, tmp_path), DEFAULTS, count_rows=True)

    assert stats.rows == len(description(name)["snapshot"])


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_told_without_counting_only_where_no_log_can_change_them(name: str, tmp_path: Path) -> None:
    stats = table_stats(golden(name, tmp_path), DEFAULTS)

    assert (stats.rows is None) == (stats.log_files > 0)


@pytest.mark.parametrize("name", COUNTED)
def test_rows_inserted_less_rows_deleted_are_the_rows_that_are_there(name: str, tmp_path: Path) -> None:
    commits = commit_facts(golden(name, tmp_path))

    assert sum(each.rows_inserted - each.rows_deleted for each in commits) == len(
        description(name)["snapshot"]
    )


def test_commits_come_newest_first_and_say_what_they_did(tmp_path: Path) -> None:
    commits = commit_facts(golden("v6_mor_simple_compaction_h0150", tmp_path))

    assert [each.operation for each in commits] == ["UPSERT", "COMPACT", "UPSERT", "UPSERT"]
    assert [each.is_service for each in commits] == [False, True, False, False]
    assert [(each.rows_inserted, each.rows_updated) for each in commits] == [(1, 2), (0, 0), (1, 2), (5, 0)]
    assert commits[-1].partitions == ("day=mon", "day=tue", "day=wed")
    assert "schema" not in commits[0].extra


def test_only_as_many_commits_are_read_as_are_asked_for(tmp_path: Path) -> None:
    state = golden("v6_mor_simple_compaction_h0150", tmp_path)
    oldest = state.timeline.completed_writes[0].file_name
    (Path(state.storage.base) / ".hoodie" / oldest).write_bytes(b"{")

    assert len(commit_facts(state, 2)) == 2


@pytest.mark.parametrize("name", NAMES)
def test_an_instant_completes_after_it_began_and_before_the_next_begins(name: str, tmp_path: Path) -> None:
    facts = [each for each in instant_facts(golden(name, tmp_path)) if each.action != "clean"]

    for each, following in zip(facts, facts[1:]):
        assert each.requested_at is not None and each.completed_at is not None
        assert each.seconds is not None and 0 < each.seconds < 60
        assert each.requested_at < each.completed_at
        assert following.requested_at is not None
        assert each.completed_at <= following.requested_at + timedelta(milliseconds=1)


def test_an_instant_is_a_moment_in_the_zone_of_the_timeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        schema = pa.schema([("id", pa.string())])
        utc = HandmadeTable(tmp_path / "utc", schema).config
        zone = {"hoodie.table.timeline.timezone": "LOCAL"}
        local = HandmadeTable(tmp_path / "local", schema, properties=zone).config

        assert moment_of(utc, "20260101093000000") == datetime(2026, 1, 1, 9, 30, tzinfo=timezone.utc)
        assert moment_of(local, "20260101093000000") == datetime(2026, 1, 1, 14, 30, tzinfo=timezone.utc)
        assert moment_of(local, "00000000000000000") is None
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_table_without_a_commit_has_facts_too(tmp_path: Path) -> None:
    state = TableState.load(HandmadeTable(tmp_path / "t", pa.schema([("id", pa.string())])).storage)
    stats = table_stats(state, DEFAULTS, count_rows=True)

    assert (stats.rows, stats.file_groups, stats.log_share, stats.instant) == (0, 0, 0.0, None)
    assert (commit_facts(state), file_facts(state), instant_facts(state)) == ([], [], [])


def test_services_are_due_when_their_triggers_fire(tmp_path: Path) -> None:
    state = golden("v6_mor_simple_deletes_h0150", tmp_path)

    def due(**options: object) -> dict[str, bool]:
        given = resolve_options({key.replace("__", "."): value for key, value in options.items()})
        return {each.service: each.due for each in table_stats(state, given).services}

    assert due() == {"compaction": False, "clean": False, "archive": False}
    limits = {"hoodie__keep__min__commits": "1", "hoodie__keep__max__commits": "2"}
    assert due(hoodie__clean__policy="KEEP_LATEST_FILE_VERSIONS", **limits)["archive"]
    assert due(hoodie__compact__inline__max__delta__commits="2")["compaction"]
    assert due(hoodie__clean__commits__retained="1")["clean"]


def test_services_are_due_by_the_figures_that_their_policy_goes_by(tmp_path: Path) -> None:
    state = TableState.load(copy_on_write(tmp_path / "t", 8).storage)

    def due(service: str, policy: str, **amounts: int) -> tuple[bool, str]:
        limits = {f"hoodie.{key.replace('__', '.')}": each for key, each in amounts.items()}
        given = resolve_options({**limits, "hoodie.clean.policy": policy})
        return next((each.due, each.reason) for each in services_due(state, given) if each.service == service)

    told = "8 commits on the timeline, 8 since the last clean; "
    versions, hours, commits = "KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_BY_HOURS", "KEEP_LATEST_COMMITS"
    assert due("clean", commits, clean__commits__retained=8) == (False, f"{told}8 are retained")
    assert due("clean", versions, clean__fileversions__retained=2, clean__commits__retained=20) == (
        True,
        f"{told}2 versions of each file group are retained",
    )
    assert not due("clean", versions, clean__fileversions__retained=8, clean__commits__retained=1)[0]
    # the commits are of years ago
    assert due("clean", hours, clean__hours__retained=1, clean__commits__retained=20)[0]
    assert due("clean", hours, clean__hours__retained=9_999_999, clean__commits__retained=1) == (
        False,
        f"{told}those of the last 9999999 hours are retained",
    )
    limits = {"keep__min__commits": 3, "keep__max__commits": 4, "clean__commits__retained": 2}
    assert due("archive", commits, **limits) == (True, "8 commits or as many cleans are above 5")


def test_a_copy_of_a_table_says_nothing_of_how_long_its_commits_took(tmp_path: Path) -> None:
    state = golden("v6_cow_nonpartitioned_upsert_h0150", tmp_path)
    for file in (tmp_path / "v6_cow_nonpartitioned_upsert_h0150" / ".hoodie").iterdir():
        os.utime(file)

    assert {each.seconds for each in commit_facts(state)} == {None}
    assert all(each.committed_at == moment_of(state.config, each.instant) for each in commit_facts(state))

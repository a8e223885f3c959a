"""Which files of a folder are taken next, and the note of those that were."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hudi_engine.errors import ConfigError, CorruptTableError
from hudi_engine.format.storage import open_storage
from hudi_engine.format.storage.base import FileStatus
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.changes.new_files import (
    LATE_MS,
    MAX_KNOWN,
    FileLimits,
    TakenFiles,
    choose_files,
    list_files,
    shown_note,
)

from tests.helpers.logged import LoggingStorage
from tests.helpers.s3_server import S3Server

NOTHING, ALL = TakenFiles(), FileLimits()


def file(path: str, modified: int = 1, size: int = 10) -> FileStatus:
    return FileStatus(path, size, modified, False)


def after(taken: TakenFiles, *files: FileStatus, waiting: Iterable[FileStatus] = ()) -> TakenFiles:
    """The note after some files, as it is read again."""
    return TakenFiles.parse(taken.with_files(files, waiting).text())


def paths(files: Iterable[FileStatus]) -> list[str]:
    return [each.path for each in files]


def test_the_oldest_files_come_first_and_names_decide_among_equals() -> None:
    choice = choose_files([file("b", 2), file("c", 1), file("a", 2)], NOTHING, ALL)
    assert paths(choice.files) == ["c", "a", "b"] and not choice.waiting


@pytest.mark.parametrize(
    ("limits", "taken"),
    [
        (FileLimits(max_files=2), 2),
        (FileLimits(max_bytes=30), 3),
        (FileLimits(max_bytes=29), 2),
        (FileLimits(max_bytes=1), 1),
        (FileLimits(max_files=1, max_bytes=100), 1),
        (FileLimits(max_files=9, max_bytes=9_000), 4),
    ],
)
def test_limits_leave_the_newest_files_for_later(limits: FileLimits, taken: int) -> None:
    listed = [file(name, number) for number, name in enumerate("abcd")]
    choice = choose_files(listed, NOTHING, limits)
    assert paths(choice.files) == ["a", "b", "c", "d"][:taken]
    assert paths(choice.waiting) == ["a", "b", "c", "d"][taken:]
    assert choose_files([], NOTHING, limits).files == []


@pytest.mark.parametrize("limit", [0, -1, True, "5", 1.5])
def test_limits_under_which_nothing_is_read_are_refused(limit: object) -> None:
    with pytest.raises(ConfigError, match=r"max_bytes is .*legal values: whole numbers of at least 1"):
        FileLimits(max_bytes=limit)  # type: ignore[arg-type]


def test_a_file_comes_again_with_another_size_or_time_only() -> None:
    taken = after(NOTHING, file("a", 5), file("b", 5), file("c", 5), file("late/d é", 9))
    listed = [file("a", 5), file("b", 5, size=11), file("c", 4), file("late/d é", 9), file("new", 1)]
    assert paths(choose_files(listed, taken, ALL).files) == ["new", "c", "b"]
    assert choose_files([], taken, ALL).files == [], "a file that has disappeared is nothing"


def test_a_file_that_has_its_earlier_content_again_comes_again() -> None:
    taken = after(after(NOTHING, file("a", 5)), file("a", 6))
    assert paths(choose_files([file("a", 5)], taken, ALL).files) == ["a"]
    assert taken.count == 1


def many(first: int, count: int, step: int) -> list[FileStatus]:
    """Files of which one comes each ``step`` milliseconds."""
    return [file(f"f{each}", each * step) for each in range(first, first + count)]


def test_only_the_newest_files_are_known_by_name() -> None:
    listed = many(0, MAX_KNOWN + 500, step=1000)
    taken = after(NOTHING, *listed)
    assert len(taken.known) == MAX_KNOWN and taken.count == len(listed)
    assert taken.watermark == listed[499].modified_ms
    assert not choose_files(listed, taken, ALL).files
    late = [file("late", listed[499].modified_ms), file("known late", listed[500].modified_ms)]
    choice = choose_files([*listed, *late], taken, ALL)
    assert (paths(choice.files), choice.unseen) == (["known late"], 1)
    changed = replace(listed[3], modified_ms=10**9)
    assert paths(choose_files([changed, *listed[4:]], taken, ALL).files) == [changed.path]


def test_files_of_the_last_hour_are_known_however_many_they_are() -> None:
    taken = after(NOTHING, *many(0, MAX_KNOWN + 500, step=1), file("newest", LATE_MS + 99))
    assert taken.watermark == 99 and taken.count == MAX_KNOWN + 501
    assert paths(choose_files([file("late", 100)], taken, ALL).files) == ["late"]


def test_a_file_that_waits_is_not_passed_by_the_watermark() -> None:
    taken = after(NOTHING, *many(10, MAX_KNOWN, step=1000))
    waiting = file("waiting", 11_500)
    for first in (MAX_KNOWN + 10, 2 * MAX_KNOWN + 10):
        taken = after(taken, *many(first, MAX_KNOWN, step=1000), waiting=[waiting])
    assert taken.watermark == 11_499
    assert choose_files([waiting], taken, ALL).files == [waiting]
    assert after(taken, waiting).watermark == 1000 * (MAX_KNOWN * 2 + 9), "the oldest of all but the newest"


def test_the_watermark_never_falls() -> None:
    taken = TakenFiles({}, 10**9, 7)
    assert after(taken, *many(10**6 + 1, MAX_KNOWN + 1, step=1000), waiting=[file("x", 5)]).watermark == 10**9


def test_a_note_of_ten_thousand_files_is_small() -> None:
    taken = NOTHING.with_files(many(1_700_000_000, MAX_KNOWN, step=1000), ())
    assert len(taken.text()) < 16 * MAX_KNOWN
    assert shown_note(taken.text()) == "10,000 files, the newest of 2023-11-14 22:13:19 UTC".replace(
        "2023-11-14 22:13:19", time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(1_700_009_999))
    )
    assert shown_note(NOTHING.text()) == "no files" and shown_note("20260101000000000") == "20260101000000000"


@pytest.mark.parametrize("damage", ['{"files":2}', '{"files":"x","known":""}', '{"files":', "[]"])
def test_a_damaged_note_is_an_error(damage: str) -> None:
    with pytest.raises(CorruptTableError, match="the checkpoint of files .* cannot be read"):
        TakenFiles.parse(damage)
    text = after(NOTHING, *many(0, 9, step=1)).text()
    with pytest.raises(CorruptTableError):
        TakenFiles.parse(text.replace('"files":9', '"files":8'))


def test_hidden_files_are_passed_over(tmp_path: Path) -> None:
    for name in ("a", "_SUCCESS", ".x", "day=1/b", "_temporary/c", "_col=1/d", "e._COPYING_"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    storage = open_storage(str(tmp_path))
    assert paths(list_files(storage)) == ["_col=1/d", "a", "day=1/b"]
    assert paths(list_files(storage, "a")) == ["day=1/b"]
    assert paths(list_files(open_storage(str(tmp_path / "a")))) == [""], "a file by itself"


def test_a_hundred_thousand_files_are_planned_with_one_listing(tmp_path: Path) -> None:
    for folder in range(100):
        (tmp_path / f"{folder:02}").mkdir()
        for number in range(1000):
            os.close(os.open(tmp_path / f"{folder:02}" / f"{number}.json", os.O_CREAT))
    storage = LoggingStorage(LocalStorage(str(tmp_path)))
    first = choose_files(list_files(storage), NOTHING, ALL)
    noted = NOTHING.with_files(first.files, first.waiting).text()
    again = choose_files(list_files(storage), TakenFiles.parse(noted), ALL)
    assert (len(first.files), again.files, again.unseen) == (100_000, [], 0)
    assert storage.requests == [("list", "")] * 2


def test_an_object_store_lists_a_thousand_files_with_a_request(s3_server: S3Server) -> None:
    storage = open_storage(f"{s3_server.new_bucket()}/landing")
    for number in range(1_100):
        storage.replace(f"2026/{number:04}.csv", b"1")
    storage.replace("2026/.folder", b"")
    s3_server.wire.requests.clear()
    assert len(list_files(storage)) == 1_100
    assert len(s3_server.wire.requests) == 2
    s3_server.wire.requests.clear()
    assert paths(list_files(storage, "2026/1097")) == ["2026/1097.csv", "2026/1098.csv", "2026/1099.csv"]
    assert [each for each in s3_server.wire.requests if "start-after=landing%2F2026%2F1097" in each]
    assert len(s3_server.wire.requests) == 1

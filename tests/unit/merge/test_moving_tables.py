"""Readers of a table that changes between their look at its timeline and their listing of its files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hudi_engine.errors import TimelineError
from hudi_engine.format.storage.base import Listing
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.services import clean
from hudi_engine.table.snapshot.manifest import live_manifest_files, publish

from tests.helpers.handmade import HandmadeTable
from tests.unit.services.tables import DAY_1, DAY_2, GROUP_1, GROUP_2, SCHEMA, batch, options, rows, writes


class Meanwhile(LocalStorage):
    """Something happens to the table each time before a reader lists its folders."""

    def __init__(self, base: str, happens: Callable[[], object], times: int = 1) -> None:
        super().__init__(base)
        self.happens, self.times = happens, times

    def list(self, path: str, recursive: bool = False, skip: frozenset[str] = frozenset()) -> Listing:
        if self.times and not path.startswith(".hoodie"):
            self.times -= 1
            self.happens()
        return super().list(path, recursive, skip)


@pytest.fixture
def table(tmp_path: Path) -> HandmadeTable:
    """Two file groups in two days."""
    found = HandmadeTable(tmp_path / "t", SCHEMA, ("day",))
    found.commit({DAY_1: {GROUP_1: batch({"a": 1}, DAY_1)}, DAY_2: {GROUP_2: batch({"b": 1}, DAY_2)}})
    return found


def updates_and_a_clean(table: HandmadeTable, **retained: object) -> Callable[[], None]:
    def happens() -> None:
        for number in (2, 3):
            table.commit({DAY_1: {GROUP_1: batch({"a": number}, DAY_1)}})
        clean(table.storage, options(**retained))

    return happens


@pytest.mark.parametrize(
    "retained",
    [
        {"clean__commits__retained": 1},
        {"clean__policy": "KEEP_LATEST_FILE_VERSIONS", "clean__fileversions__retained": 1},
    ],
)
def test_a_clean_under_the_listing_makes_the_reader_look_again(
    retained: dict[str, object], table: HandmadeTable
) -> None:
    slow = Meanwhile(table.storage.base, updates_and_a_clean(table, **retained))
    assert rows(slow) == {"a": 3, "b": 1}


def test_a_point_in_time_that_is_cleaned_away_under_the_listing_is_refused(table: HandmadeTable) -> None:
    (first,) = writes(table.storage)
    slow = Meanwhile(table.storage.base, updates_and_a_clean(table, clean__commits__retained=1))
    with pytest.raises(TimelineError, match="has been cleaned up to"):
        rows(slow, first)


def test_a_commit_taken_back_under_the_listing_makes_the_reader_look_again(table: HandmadeTable) -> None:
    second = table.commit({DAY_1: {GROUP_1: batch({"a": 2}, DAY_1)}})

    def happens() -> None:
        table.storage.delete(f".hoodie/{second}.commit")
        for path in table.path.glob(f"*/*{second}.parquet"):
            path.unlink()

    assert rows(Meanwhile(table.storage.base, happens)) == {"a": 1, "b": 1}


def test_a_clean_of_what_a_reader_does_not_need_costs_no_second_look(table: HandmadeTable) -> None:
    for number in (2, 3, 4):
        table.commit({DAY_1: {GROUP_1: batch({"a": number}, DAY_1)}})
    slow = Meanwhile(
        table.storage.base, lambda: clean(table.storage, options(clean__commits__retained=2)), times=9
    )
    assert rows(slow) == {"a": 4, "b": 1}
    assert slow.times == 8


def test_a_reader_gives_up_with_a_reason_when_the_table_never_stands_still(table: HandmadeTable) -> None:
    slow = Meanwhile(table.storage.base, updates_and_a_clean(table, clean__commits__retained=1), times=99)
    with pytest.raises(TimelineError, match="cleaned, restored or replaced each of the 5 times"):
        rows(slow)


def test_a_published_list_is_made_again_when_files_went_while_it_was_made(table: HandmadeTable) -> None:
    slow = Meanwhile(table.storage.base, updates_and_a_clean(table, clean__commits__retained=1))
    publish(slow)
    listed = live_manifest_files(table.storage)
    assert all(table.storage.exists(path) for path in listed) and len(listed) == 2

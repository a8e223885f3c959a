"""The page about a table: what it tells, that nothing in a table breaks it, and that it stays small and quick."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.inspect import commit_facts
from hudi_engine.table.report import Facts, gather, page, write_report
from hudi_engine.table.report.markup import tag, text
from hudi_engine.table.report.page import rows_over_time
from hudi_engine.table.services.due import table_stats
from hudi_engine.table.state import TableState
from hudi_engine.table.table_services import TableServices

from tests.golden.golden import NAMES, description, unpack
from tests.helpers.busy_table import busy_table
from tests.helpers.handmade import HandmadeTable

DEFAULTS = resolve_options(None)
HOSTILE = "\"><script>alert('x')</script><img src=x onerror=alert(1)>&lt;\u202e\x00"
NOT_CLOSED = {"meta"}


class Reader(HTMLParser):
    """Takes a page apart: how often each element is there, its texts, and whether every element is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.attributes: Counter[str] = Counter()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self.attributes.update(name for name, _ in attrs)
        if tag not in NOT_CLOSED:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def state_of(path: Path) -> TableState:
    return TableState.load(open_storage(str(path)))


def facts_of(path: Path, *, count_rows: bool = False) -> Facts:
    return gather(state_of(path), DEFAULTS, count_rows=count_rows)


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_every_table_tells_each_commit_each_partition_and_the_rows(
    name: str, tmp_path: Path
) -> None:
    table = unpack(name, tmp_path)
    read = Reader(page(facts_of(table, count_rows=True)))
    state = state_of(table)

    assert read.open == []
    assert f"{len(description(name)['snapshot']):,}" in read.texts
    assert {each.instant for each in commit_facts(state)} <= set(read.texts)
    assert {each.partition for each in table_stats(state, DEFAULTS).partitions if each.partition} <= set(
        read.texts
    )


def test_services_say_whether_they_are_due_why_and_what_they_would_take(tmp_path: Path) -> None:
    table = busy_table(tmp_path / "t", commits=140, partitions=["day=1", "day=2"], logs=True)
    services = TableServices(open_storage(str(table)), DEFAULTS)
    going = services.archive(dry_run=True).instants
    shown = page(facts_of(table))

    assert f"it would move {len(going)} instants to the archive" in shown
    assert "it would merge 2 file groups" in shown
    assert "27 delta commits since the last one; NUM_COMMITS asks for 5" in shown


def test_rows_over_time_are_those_that_readers_saw_at_each_commit(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", pa.schema([("id", pa.int64())]))
    table.commit({"": {"a": pa.table({"id": [1, 2, 3]})}})
    facts = facts_of(tmp_path / "t")

    assert rows_over_time(facts)[-1] == 3


def test_names_and_values_of_a_table_are_text_and_never_markup(tmp_path: Path) -> None:
    folder = "day=" + HOSTILE.replace("/", "").replace("\x00", "")
    partitions = [folder, "day=2"]
    plain = busy_table(tmp_path / "plain", commits=40, partitions=["day=1", "day=2"], logs=True)
    hostile = busy_table(
        tmp_path / "bad", commits=40, partitions=partitions, name="<script>alert(1)</script>"
    )
    good, bad = Reader(page(facts_of(plain))), Reader(page(facts_of(hostile)))

    assert bad.open == []
    assert bad.elements["script"] == good.elements["script"] == 1
    assert bad.elements["img"] == 0
    assert not [name for name in bad.attributes if name.startswith("on")]
    assert "<script>alert(1)</script>" in bad.texts


def test_what_shows_nothing_or_turns_the_direction_of_writing_is_shown_by_its_number() -> None:
    assert text("a\u202eb\x00\ud800") == "a\\u202eb\\u0000\\ud800"
    assert tag("p", "<b>", title='"') == '<p title="&quot;">&lt;b&gt;</p>'
    assert len(text("x" * 10_000)) < 400


def test_the_page_asks_nobody_for_anything_and_has_light_and_dark(tmp_path: Path) -> None:
    shown = page(facts_of(busy_table(tmp_path / "t", commits=5, partitions=["day=1"])))

    assert not re.search(r"https?:|//[a-z]|@import|url\(|<link|<iframe|\bsrc=", shown)
    assert "default-src 'none'" in shown
    assert "prefers-color-scheme:dark" in shown and "color-scheme:light dark" in shown
    assert 'name="viewport"' in shown
    assert " style=" not in shown


def test_ten_thousand_commits_and_five_thousand_partitions_stay_a_page_of_a_few_megabytes(
    tmp_path: Path,
) -> None:
    days = [f"day={each}" for each in range(5000)]
    table = busy_table(tmp_path / "t", commits=10_000, partitions=days)
    # About 2.5 s of one core where this was written; the bound catches what grows with the square of the commits.
    start = time.process_time()
    written = write_report(state_of(table), DEFAULTS, tmp_path / "page.html")
    took = time.process_time() - start

    assert written.bytes < 5_000_000
    assert took < 20
    shown = written.path.read_text(encoding="utf-8")
    assert "The 500 newest commits of 10,000 are shown." in shown
    assert "The 500 largest partitions of 5,000 are shown." in shown


def test_a_table_without_commits_has_a_page(tmp_path: Path) -> None:
    HandmadeTable(tmp_path / "t", pa.schema([("id", pa.int64())]))

    assert "There is no commit yet." in page(facts_of(tmp_path / "t"))


@pytest.mark.parametrize("place", ["t/page.html", "t/.hoodie/page.html", "folder"])
def test_a_page_in_the_table_or_in_place_of_a_folder_is_refused(place: str, tmp_path: Path) -> None:
    table = busy_table(tmp_path / "t", commits=2, partitions=["day=1"])
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises(ConfigError, match=re.escape(str(tmp_path / place))):
        write_report(state_of(table), DEFAULTS, tmp_path / place)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_page_is_replaced_as_a_whole(tmp_path: Path) -> None:
    table = busy_table(tmp_path / "t", commits=2, partitions=["day=1"])
    (tmp_path / "seen").mkdir()
    for _ in range(2):
        written = write_report(state_of(table), DEFAULTS, tmp_path / "seen" / "page.html")

    assert [each.name for each in written.path.parent.iterdir()] == ["page.html"]
    assert written.path.stat().st_size == written.bytes


@pytest.mark.parametrize(("mask", "mode"), [(0o077, 0o600), (0o022, 0o644)])
def test_a_page_is_for_whom_the_umask_says(mask: int, mode: int, tmp_path: Path) -> None:
    table = busy_table(tmp_path / "t", commits=2, partitions=["day=1"])
    before = os.umask(mask)
    try:
        written = write_report(state_of(table), DEFAULTS, tmp_path / "page.html")
    finally:
        os.umask(before)

    assert written.path.stat().st_mode & 0o777 == mode

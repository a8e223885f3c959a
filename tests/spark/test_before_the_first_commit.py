"""States from before a table's first commit, where cleans and archiving have come since."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine import HudiTable, read
from hudi_engine.errors import TimelineError
from hudi_engine.table.inspect.files import file_facts
from hudi_engine.table.state import TableState

FEW = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
LONG_AGO = "2020-01-01"


def cleaned(spark, path: Path, *, archived: bool) -> tuple[HudiTable, list[str]]:
    table = HudiTable.create(spark, str(path), name="t", record_key=["key"], options=FEW)
    rows = pa.table({"key": ["k"], "v": [0]})
    instants = [str(table.upsert(rows).instant) for _ in range(6)]
    assert table.clean(retain_commits=1).files_deleted
    if archived:
        assert f"{instants[1]}.commit" in table.archive(3, 4).instants
    return table, instants


@pytest.mark.parametrize("archived", [False, True])
def test_before_its_first_commit_a_cleaned_table_has_no_rows_and_the_log_says_which_that_is(
    spark, tmp_path: Path, caplog, archived: bool
) -> None:
    table, instants = cleaned(spark, tmp_path / "t", archived=archived)
    with caplog.at_level(logging.WARNING):
        assert table.as_of(LONG_AGO).count() == 0
    assert f"has no rows: its oldest commit is {instants[0]}" in caplog.text
    assert read(table.path, as_of=LONG_AGO).to_arrow().num_rows == 0
    assert file_facts(TableState.load(table.storage), as_of="20200101000000000") == []


@pytest.mark.parametrize("archived", [False, True])
def test_the_first_commit_itself_whose_files_a_clean_took_is_an_error(
    spark, tmp_path: Path, archived: bool
) -> None:
    table, instants = cleaned(spark, tmp_path / "t", archived=archived)
    with pytest.raises(TimelineError, match="cleaned up to .* retain more commits"):
        table.as_of(instants[0])


def test_the_oldest_commit_of_a_table_that_lost_its_archive_is_not_taken_for_its_first(
    spark, tmp_path: Path
) -> None:
    table, _ = cleaned(spark, tmp_path / "t", archived=True)
    shutil.rmtree(tmp_path / "t" / ".hoodie" / "archived")
    with pytest.raises(TimelineError, match="cleaned up to"):
        table.as_of(LONG_AGO)

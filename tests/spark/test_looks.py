"""`HudiTable` tells what the command line tells, as values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hudi_engine import HudiTable

from tests.golden.golden import unpack

GOLDEN = "v6_mor_bucket_logs_only_h0150"


@pytest.fixture
def table(spark: Any, tmp_path: Path) -> HudiTable:
    return HudiTable.open(spark, str(unpack(GOLDEN, tmp_path)))


def test_numbers_partitions_and_files_agree(table: HudiTable) -> None:
    stats, parts, files = table.stats(count_rows=True), table.partitions(), table.files()
    assert stats.partitions == tuple(parts)
    assert sum(each.base_files + each.log_files for each in parts) == len(files)
    assert stats.rows is not None and stats.rows > 0
    assert {each.service for each in stats.services} >= {"compaction", "clean", "archive"}


def test_commits_are_told_newest_first(table: HudiTable) -> None:
    found = table.commits()
    instants = [each.instant for each in found]
    assert instants == sorted(instants, reverse=True)
    assert table.commits(limit=1) == found[:1]
    assert set(instants) <= {each.requested_time for each in table.timeline()}


def test_a_table_that_lost_a_file_is_not_sound(table: HudiTable) -> None:
    assert [each for each in table.validate(keys=True) if each.harms] == []
    lost = next(each for each in table.files() if each.kind == "base")
    Path(table.storage.base, lost.path).unlink()
    assert [each.path for each in table.validate() if each.harms] == [lost.path]

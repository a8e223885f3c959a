"""Tables of versions 8 and 9 that this engine makes, continues and upgrades, read and continued by Apache Hudi."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.forms import in_turn
from tests.judge.readers import Judges
from tests.judge.versioned_table import Table

NEWEST, OF_VERSION_8 = "1.2.0", "1.0.2"
BUSY = {
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
    "hoodie.clean.commits.retained": "2",
}


@pytest.fixture
def release() -> str:
    """Release of Apache Hudi that judges."""
    return NEWEST


@pytest.fixture
def table(
    request: pytest.FixtureRequest, spark: Any, tmp_path: Path, apache_hudi: Judges, release: str
) -> Table:
    return Table(spark, tmp_path / "t", request.param, apache_hudi(release))


@pytest.mark.parametrize(("table", "version"), in_turn(["cow", "mor"], [9, 8]), indirect=["table"])
def test_every_operation_and_service_leaves_the_right_rows(table: Table, version: int) -> None:
    every_operation(table, version)


@pytest.mark.long
@pytest.mark.parametrize("release", [OF_VERSION_8])
@pytest.mark.parametrize("table", ["cow", "mor"], indirect=True)
def test_the_release_of_version_8_reads_and_continues_it(table: Table, release: str) -> None:
    every_operation(table, 8)
    chance = random.Random(release)
    for turn in range(20, 26):
        table.upsert(chance.sample(range(40), 6), turn, **BUSY)
        table.upsert_by_hudi(chance.sample(range(40), 6), turn)
    table.check("twelve writes in turn")
    if table.kind == "mor":
        table.compact_by_hudi(8)
        table.check("compaction by Apache Hudi")
        table.upsert(range(3, 9), 30)
        table.opened.compact()
        table.check("compaction after it")


@pytest.mark.long
@pytest.mark.parametrize("release", [OF_VERSION_8])
@pytest.mark.parametrize("table", ["cow", "mor"], indirect=True)
def test_a_table_that_the_release_of_version_8_made_is_continued(table: Table, release: str) -> None:
    table.make_by_hudi(range(30), 1, 8)
    table.check("a table of Apache Hudi")
    every_operation(table, 8)


def every_operation(table: Table, version: int) -> None:
    """Write in each way, run the services, and look after each; the table is made unless it is there."""
    if not table.path.exists():
        table.make(version)
    table.upsert(range(30), 1)
    table.upsert(range(20, 40), 2)
    table.opened.delete(table.frame([1, 2, 3], 3))
    table.forget([1, 2, 3])
    table.check("writes")
    if table.kind == "mor":
        table.opened.compact()
        table.upsert(range(6, 12), 4)
        table.check("compaction")
    table.opened.insert_overwrite(table.frame([0, 33], 5))
    table.rows = {key: row for key, row in table.rows.items() if row["dt"] != "p0"}
    table.note([0, 33], 5)
    table.opened.cluster()
    table.check("overwrite and clustering")
    saved, before = table.opened.savepoint().instant, dict(table.rows)
    table.upsert(range(40, 50), 6)
    table.check("a write after a savepoint")
    table.opened.restore(saved)
    table.rows = before
    table.check("restore")
    table.upsert(range(40, 50), 7)
    table.upsert_by_hudi([20, 77], 9)
    table.check("a write of Apache Hudi")
    table.upsert([20, 21, 78], 10)
    before = dict(table.rows)
    table.opened.rollback(table.upsert([21], 11))
    table.rows = before
    table.check("rollback")


@pytest.mark.parametrize("table", ["mor"], indirect=True)
def test_compaction_of_hudi_takes_logs_of_archived_writes(table: Table) -> None:
    chance = random.Random(1)
    table.make(8)
    for turn in range(1, 17):
        table.upsert(range(40) if turn == 1 else chance.sample(range(40), 6), turn, **BUSY)
    table.compact_by_hudi(8)
    table.check("compaction by Apache Hudi")


@pytest.mark.parametrize("table", ["cow", "mor"], indirect=True)
def test_upgrades_and_downgrades_between_writes_of_both(table: Table) -> None:
    chance, turn = random.Random(2), 0
    table.make(6)
    for version in (6, 8, 9, 6, 9):
        change = table.opened.upgrade if version >= table.opened.config.version else table.opened.downgrade
        change(version)
        assert table.opened.config.version == version
        table.check(f"version {version}")
        for _ in range(6):
            turn += 1
            table.upsert(chance.sample(range(40), 6), turn, **BUSY)
        turn += 1
        table.upsert_by_hudi([20, 77], turn)
        table.check(f"writes in version {version}")


@pytest.mark.parametrize("table", ["mor"], indirect=True)
def test_logs_of_earlier_slices_stay_there_after_a_downgrade(table: Table) -> None:
    # without an order the later place in the slice decides which row of a key stays
    table.ordered = False
    table.make(9)
    table.upsert(range(6), 1)
    table.upsert([0, 1], 2)
    table.opened.compact()
    table.upsert([0, 6], 3)
    table.opened.downgrade(6)
    table.check("downgrade")
    table.upsert_by_hudi([5], 4)
    table.check("a write of Apache Hudi")

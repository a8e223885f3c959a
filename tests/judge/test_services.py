"""Compaction and clean, ours and Apache Hudi's, on each other's merge-on-read tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hudi_engine import HudiTable
from hudi_engine.table.txn.transaction import WriteTransaction

from tests.helpers.fault import SimulatedCrash, raise_crash
from tests.helpers.forms import forms, in_turn, named
from tests.judge.apache_hudi import VERSIONS
from tests.judge.arrow_rows import rows_of_spark
from tests.judge.hudi_rs import hudi_rs_rows
from tests.judge.readers import Judges, assert_all_read
from tests.judge.rows import difference, without_meta
from tests.judge.shapes import COLUMNS, SHAPES, arrow, row

MOR = SHAPES[3]
LOGS = [shape for shape in SHAPES if shape.table_type == "mor"]
RUN = {"op": "scheduleandexecute", "options": "hoodie.compact.inline.max.delta.commits=1"}


def read_optimized(rows: list[dict[str, Any]]) -> dict[int, float]:
    return {row["id"]: row["price"] for row in rows}


def test_the_read_optimized_view_lags_until_compaction(
    spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    table = MOR.create(HudiTable, spark, str(tmp_path / "t"))
    table.upsert(spark.createDataFrame([row(1, 10, name="build5")], COLUMNS))
    table.upsert(spark.createDataFrame([row(1, 20, name="build6")], COLUMNS))

    def names(query: str) -> list[str]:
        return [
            hudi_rs_rows(tmp_path / "t", query)[0]["name"],
            *(apache_hudi(version).read(tmp_path / "t", query)[0]["name"] for version in VERSIONS),
        ]

    assert (names("read_optimized"), names("snapshot")) == (["build5"] * 3, ["build6"] * 3)
    table.compact()
    assert (names("read_optimized"), names("snapshot")) == (["build6"] * 3, ["build6"] * 3)


# A second form of what `test_table_services.py` shows, as is the compaction that we scheduled.
@pytest.mark.long
@pytest.mark.parametrize("shape", LOGS, ids=lambda shape: shape.name)
def test_our_compaction_and_clean_change_no_row_for_any_reader(
    shape: Any, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    table, oracle = shape.create(HudiTable, spark, str(tmp_path / "t")), shape.oracle()
    for batch in range(4):
        rows = [row(number, 10 * (batch + 1)) for number in range(batch, 9)]
        oracle.upsert(rows)
        table.upsert(spark.createDataFrame(rows, COLUMNS))
    gone = [row(2, 99), row(8, 99)]
    oracle.delete(gone)
    table.delete(spark.createDataFrame(gone, COLUMNS))

    assert table.compact().state == "completed"
    assert_all_read(tmp_path / "t", oracle.rows(), apache_hudi)
    more = [row(3, 100), row(40, 100)]
    oracle.upsert(more)
    table.upsert(spark.createDataFrame(more, COLUMNS))
    assert table.clean(retain_commits=1).files_deleted > 0
    assert_all_read(tmp_path / "t", oracle.rows(), apache_hudi)


def with_logs(spark: Any, path: Path) -> tuple[HudiTable, Any]:
    """A merge-on-read table of nine rows, three of them updated in logs, and its oracle."""
    table, oracle = MOR.create(HudiTable, spark, str(path)), MOR.oracle()
    for rows in ([row(number, 10) for number in range(9)], [row(number, 20) for number in (0, 4, 8)]):
        oracle.upsert(rows)
        table.upsert(spark.createDataFrame(rows, COLUMNS))
    return table, oracle


@pytest.mark.parametrize("version", forms(VERSIONS, VERSIONS[:1]))
def test_apache_hudi_compacts_our_logs_and_we_go_on(
    version: str, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    hudi, path = apache_hudi(version), tmp_path / "t"
    table, oracle = with_logs(spark, path)
    assert read_optimized(hudi.read(path, "read_optimized"))[4] == 10.0

    hudi.call(path, "run_compaction", **RUN)

    assert read_optimized(rows_of_spark(table.read_optimized()))[4] == 20.0
    assert difference(without_meta(rows_of_spark(table.snapshot())), oracle.rows()) == ""
    more = [row(4, 30), row(9, 30)]
    oracle.upsert(more)
    result = table.upsert(spark.createDataFrame(more, COLUMNS))
    assert (result.rows_inserted, result.rows_updated) == (1, 1)
    assert_all_read(path, oracle.rows(), apache_hudi)


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
def test_apache_hudi_executes_a_compaction_that_we_scheduled(
    version: str, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    hudi, path = apache_hudi(version), tmp_path / "t"
    table, oracle = with_logs(spark, path)
    assert table.schedule_compaction().state == "scheduled"
    later = [row(4, 30)]
    oracle.upsert(later)
    table.upsert(spark.createDataFrame(later, COLUMNS))
    # hudi-rs does not look at logs that came after a pending compaction.
    assert_all_read(path, oracle.rows(), apache_hudi, rust=False)

    hudi.call(path, "run_compaction", op="run")

    assert [each.state for each in table.compactions()] == ["COMPLETED"]
    assert read_optimized(rows_of_spark(table.read_optimized()))[0] == 20.0
    assert difference(without_meta(rows_of_spark(table.snapshot())), oracle.rows()) == ""
    assert_all_read(path, oracle.rows(), apache_hudi)


@pytest.mark.parametrize("version", forms(VERSIONS, VERSIONS[1:]))
def test_we_compact_and_clean_a_table_that_apache_hudi_wrote_and_it_goes_on(
    version: str, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    hudi, path, options = apache_hudi(version), tmp_path / "t", MOR.hudi_options()
    oracle = MOR.oracle()
    for rows in ([row(number, 10) for number in range(9)], [row(number, 20) for number in (0, 4, 8)]):
        oracle.upsert(rows)
        hudi.upsert(path, arrow(rows), options)
    table = HudiTable.open(spark, str(path))

    assert table.compact().state == "completed"
    table.clean(retain_commits=1)
    assert_all_read(path, oracle.rows(), apache_hudi)

    more = [row(4, 30), row(9, 30)]
    oracle.upsert(more)
    hudi.upsert(path, arrow(more), options)
    assert_all_read(path, oracle.rows(), apache_hudi)
    assert difference(without_meta(rows_of_spark(table.snapshot())), oracle.rows()) == ""


@pytest.mark.parametrize("version", forms(VERSIONS, VERSIONS[:1]))
def test_apache_hudi_rolls_back_what_a_dead_writer_of_ours_left(
    version: str, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    hudi, path, shape = apache_hudi(version), tmp_path / "t", SHAPES[0]
    table, oracle = shape.create(HudiTable, spark, str(path)), shape.oracle()
    first = [row(number, 10) for number in range(6)]
    oracle.upsert(first)
    table.upsert(spark.createDataFrame(first, COLUMNS))
    dead = leave_an_open_instant(path)

    theirs = [row(0, 20), row(6, 20)]
    oracle.upsert(theirs)
    hudi.upsert(path, arrow(theirs), shape.hudi_options())

    assert not (path / ".hoodie" / f"{dead}.commit.requested").exists()
    assert not list(path.glob(f"day=*/*_{dead}.parquet"))
    assert difference(without_meta(rows_of_spark(table.snapshot())), oracle.rows()) == ""
    assert_all_read(path, oracle.rows(), apache_hudi)


@pytest.mark.parametrize(("shape", "version"), in_turn((SHAPES[0], MOR), VERSIONS), ids=named)
def test_apache_hudi_finds_the_files_of_a_dead_writer_of_ours_by_its_collected_markers(
    shape: Any,
    version: str,
    spark: Any,
    tmp_path: Path,
    apache_hudi: Judges,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hudi, path = apache_hudi(version), tmp_path / "t"
    table, oracle = shape.create(HudiTable, spark, str(path)), shape.oracle()
    first = [row(number, 10) for number in range(6)]
    oracle.upsert(first)
    table.upsert(spark.createDataFrame(first, COLUMNS))
    known = data_files(path)
    with monkeypatch.context() as dying:
        dying.setattr(WriteTransaction, "commit", lambda *_, **__: raise_crash())
        dying.setattr(WriteTransaction, "abort", lambda transaction, _: transaction._end())
        with pytest.raises(SimulatedCrash):
            table.upsert(spark.createDataFrame([row(number, 20) for number in range(9)], COLUMNS))
    left = data_files(path) - known
    (markers,) = (path / ".hoodie" / ".temp").glob("*/MARKERS.type")
    assert len(left) >= 3 and markers.read_text() == "TIMELINE_SERVER_BASED"

    theirs = [row(0, 15), row(9, 20)]
    oracle.upsert(theirs)
    hudi.upsert(path, arrow(theirs), shape.hudi_options())

    if shape.table_type == "cow":
        assert not left & data_files(path)
    assert not markers.exists()
    assert difference(without_meta(rows_of_spark(table.snapshot())), oracle.rows()) == ""
    assert_all_read(path, oracle.rows(), apache_hudi)


def data_files(path: Path) -> set[str]:
    return {str(each.relative_to(path)) for each in path.glob("day=*/*") if "metadata" not in each.name}


def leave_an_open_instant(path: Path) -> str:
    """Add what a writer that died just before its commit leaves; gives its instant."""
    newest = max(path.glob(".hoodie/*.commit")).name.removesuffix(".commit")
    dead = str(int(newest) + 1)
    for suffix in (".commit.requested", ".inflight"):
        content = (path / ".hoodie" / f"{newest}{suffix}").read_bytes()
        (path / ".hoodie" / f"{dead}{suffix}").write_bytes(content)
    base = next(path.glob(f"day=mon/*_{newest}.parquet"))
    stray = base.with_name(base.name.replace(newest, dead))
    stray.write_bytes(base.read_bytes())
    marker = path / ".hoodie" / ".temp" / dead / "day=mon" / f"{stray.name}.marker.MERGE"
    marker.parent.mkdir(parents=True)
    marker.touch()
    return dead

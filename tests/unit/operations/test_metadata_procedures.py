"""Hudi's procedures about the metadata table, and looking keys up from a shell."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path

import hudi_engine
import pyarrow as pa
import pytest
from hudi_engine.cli import main
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.operations.procedures import PROCEDURES, call_procedure, find_procedure
from hudi_engine.table.table_services import TableServices

from tests.golden.golden import unpack as unpack_golden
from tests.unit.data_skipping.hudi_tables import ALL_INDEXES, opened_files, unpack


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(unpack(ALL_INDEXES, tmp_path_factory.mktemp("metadata")))


def call(path: Path, name: str, **given: str) -> list[dict[str, object]]:
    services = TableServices(open_storage(str(path)), resolve_options({}))
    return [dict(each) for each in call_procedure(PROCEDURES[name], services, given).rows]


def test_partitions_and_files_are_those_on_storage(path: Path) -> None:
    partitions = [each["partition"] for each in call(path, "show_metadata_table_partitions")]
    assert partitions == sorted(each.name for each in path.glob("dt=*"))
    for each in partitions:
        stored = sorted(file.name for file in path.glob(f"{each}/*.parquet"))
        found = call(path, "show_metadata_table_files", partition=str(each))
        assert [row["file_path"] for row in found] == stored
    with pytest.raises(ConfigError, match="partition is 'dt=1999', in which the table has no files"):
        call(path, "show_metadata_table_files", partition="dt=1999")


def test_run_indexing_builds_one_index_and_returns_all(tmp_path: Path) -> None:
    table = Path(unpack(ALL_INDEXES, tmp_path))
    before = call(table, "run_indexing", index="bloom_filters")
    assert {row["index_name"] for row in before} == {
        *("bloom_filters", "column_stats", "expr_index_idx_ts", "partition_stats", "record_index"),
        "secondary_index_idx_name",
    }
    with pytest.raises(ConfigError, match="index is 'x'; legal values: files, column_stats"):
        call(table, "run_indexing", index="x")


def test_indexes_are_shown_with_the_columns_that_they_name(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(path), "indexes", "--json"]) == 0
    rows = {row["index_name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["secondary_index_idx_name"] == {
        "index_name": "secondary_index_idx_name",
        "index_type": "secondary_index",
        "col_name": "name",
    }
    assert rows["column_stats"]["col_name"] == "" and "files" not in rows


def test_sizes_are_those_of_each_partition_of_the_metadata_table(path: Path) -> None:
    stats = {row["stat_key"]: row["stat_value"] for row in call(path, "show_metadata_table_stats")}
    assert stats["partitionCount"] == "7"
    assert stats["record_index.baseFileCount"] == "2"
    assert int(str(stats["files.totalLogFileSizeInBytes"])) > 0


def test_column_statistics_are_those_of_the_newest_base_files(path: Path) -> None:
    rows = call(path, "show_metadata_table_column_stats", targetcolumns="name,b")
    by_column = {name: [row for row in rows if row["column_name"] == name] for name in ("b", "name")}
    assert len(by_column["name"]) == len(by_column["b"]) == len(rows) / 2 == 4
    assert {row["min_value"] for row in by_column["name"]} == {"anna", "dé$a", "eve", "fay"}
    (one,) = call(path, "show_metadata_table_column_stats", partition="dt=2024-01-03", targetcolumns="name")
    assert (one["min_value"], one["null_number"]) == ("fay", 0)


def test_overlap_counts_the_files_that_hold_a_value(path: Path) -> None:
    rows = call(path, "show_metadata_column_stats_overlap", targetcolumns="qty")
    assert [(row["Field name"], row["Maximum file overlap"]) for row in rows] == [("qty", 1)] * 3
    assert sum(int(str(row["Total file number"])) for row in rows) == 4


def test_a_table_without_metadata_table_and_unknown_procedures_are_refused(tmp_path: Path) -> None:
    plain = unpack_golden("v6_mor_simple_deletes_h0150", tmp_path)
    for name in PROCEDURES:
        if name.startswith("show_metadata_"):
            with pytest.raises(ConfigError, match="has no metadata table"):
                call(plain, name)
    with pytest.raises(
        ConfigError, match="legal of these: delete_metadata_table, show_metadata_column_stats_overlap"
    ):
        find_procedure("create_metadata_table")


def test_a_shell_looks_keys_up(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(path), "lookup", "k1", "k3", "--columns", "id", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["rows"] == [{"id": "k1"}, {"id": "k3"}]
    assert "1 of 3 partitions skipped by record_index" in shown["notes"]
    assert main([str(path), "lookup", "k2"]) == 0
    assert "the table has no row with k2" in capsys.readouterr().out


def test_a_shell_shows_values_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = hudi_engine.create_table(
        str(tmp_path / "t"), name="t", record_key=["order_id"], precombine_field="ts"
    )
    day = datetime.date(2026, 1, 5)
    table.upsert(
        pa.table(
            {"order_id": ["a"], "ts": [2948], "amount": [2.01], "day": [day], "price": [Decimal("1.10")]}
        )
    )
    assert main([table.path, "lookup", "a", "z"]) == 0
    head, row, _, note = capsys.readouterr().out.splitlines()
    assert head.split() == ["order_id", "ts", "amount", "day", "price"]
    assert row.split() == ["a", "2948", "2.01", "2026-01-05", "1.10"]
    assert note == "the table has no row with z"
    assert main([table.path, "lookup", "a", "--columns", "day,price", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"day": "2026-01-05", "price": "1.10"}]


def test_statistics_of_other_columns_than_those_that_are_there_are_refused(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(path), "create-index", "column_stats", "--columns", "qty"]) == 2
    assert "column_stats is there over" in capsys.readouterr().err


def test_explain_shows_what_each_index_skips_and_reads_no_row(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened_files() as opened:
        assert main([str(path), "explain", "qty = 11", "name in eve,fay", "--json"]) == 0
    assert opened == []
    shown = json.loads(capsys.readouterr().out)
    steps = {row["index"]: row["skipped"] for row in shown["indexes"]}
    assert steps["secondary_index_idx_name"] == 1
    assert (shown["read"], shown["listed"]) == (2, False) and shown["bytes_read"] > 0
    assert main([str(path), "explain", "qty = many"]) == 2
    assert main([str(path), "stats"]) == 0
    assert "indexes" in capsys.readouterr().out

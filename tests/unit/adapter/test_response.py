"""The line dbt prints for a write."""

from __future__ import annotations

import pytest
from hudi_engine.table.services.result import ArchiveResult, CleanResult, CompactionResult, ServicesReport
from hudi_engine.table.write.result import WriteResult

from dbt.adapters.hudi.response import short_number, write_response


def test_the_message_names_instant_rows_files_and_bytes() -> None:
    response = write_response(
        WriteResult(
            "20261121101500123",
            "UPSERT",
            3,
            ("a", "b"),
            rows_inserted=120,
            rows_updated=30,
            rows_deleted=2,
            bytes_written=1200000,
        )
    )
    assert str(response) == "UPSERT 20261121101500123 +120 ~30 -2 rows, 3 files, 1.2 MB"
    assert response.rows_affected == 152
    assert response.to_dict()["rows_updated"] == 30
    assert response.partitions_written == 2


def test_rows_in_the_error_table_are_named() -> None:
    response = write_response(WriteResult("1", "UPSERT", 1, rows_inserted=3), set_aside=1)
    assert str(response) == "UPSERT 1 +3 rows, 1 file, 0 B, 1 row to the error table"
    assert (response.rows_affected, response.rows_set_aside) == (3, 1)


def test_a_write_without_a_commit_says_so() -> None:
    assert str(write_response(WriteResult(None, "DELETE"))) == "DELETE no commit +0 rows, 0 files, 0 B"


def test_a_rebuilt_table_has_as_many_rows_affected_as_it_has_rows() -> None:
    response = write_response(
        WriteResult(
            "20261121101500123",
            "INSERT_OVERWRITE_TABLE",
            1,
            rows_inserted=3,
            rows_deleted=3,
            bytes_written=10,
        )
    )
    assert (response.rows_affected, response.rows_deleted) == (3, 3)


def test_services_that_ran_with_a_write_stand_in_its_line() -> None:
    report = ServicesReport(
        (
            CompactionResult("2", "completed", file_groups=3),
            CompactionResult("3", "scheduled", file_groups=1),
        ),
        CleanResult("4", files_deleted=1),
        ("archive: the disk is full",),
        ArchiveResult(("1.commit", "2.commit")),
    )
    told = str(write_response(WriteResult("1", "UPSERT", 1, rows_inserted=1, services=report.told)))
    assert told == (
        "UPSERT 1 +1 rows, 1 file, 0 B | compacted 3 file groups, planned to compact 1 file group, cleaned 1 file, "
        "archived 2 instants, archive failed"
    )


def test_services_that_had_nothing_to_do_are_not_told() -> None:
    report = ServicesReport((CompactionResult(reason="no logs"),), CleanResult(reason="young"))
    assert "|" not in str(write_response(WriteResult("1", "UPSERT", services=report.told)))


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (9_999, "9,999"), (1_250_000, "1.2 M"), (3_000_000_000, "3.0 G")]
)
def test_counts_are_readable(number: int, text: str) -> None:
    assert short_number(number) == text

"""The line dbt prints for a write."""

from __future__ import annotations

import pytest

from dbt.adapters.hudi.response import format_bytes, write_response


def test_the_message_names_instant_rows_files_and_bytes() -> None:
    response = write_response(
        "upsert",
        instant="20261121101500123",
        inserted=120,
        updated=30,
        deleted=2,
        files=3,
        size=1258291,
        partitions=2,
    )
    assert str(response) == "UPSERT 20261121101500123 +120 ~30 -2 rows, 3 files, 1.2 MB"
    assert response.rows_affected == 152
    assert response.to_dict()["rows_updated"] == 30


def test_a_write_without_a_commit_says_so() -> None:
    response = write_response(
        "delete", instant=None, inserted=0, updated=0, deleted=0, files=0, size=0, partitions=0
    )
    assert str(response) == "DELETE no commit +0 rows, 0 files, 0 B"


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KB"), (5 * 1024**4, "5.0 TB")]
)
def test_bytes_are_readable(size: int, text: str) -> None:
    assert format_bytes(size) == text

"""Small writes announce the files that they foresee together, and what they announce is what they commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.format.filegroup.markers import list_markers, marker_folder
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.table.txn import transaction

from tests.helpers.keyed import keyed_table

COLUMNS = "id int, ts int, dt string, v string"
FIRST = [(number, 1, "abc"[number % 3], "old") for number in range(30)]
INDEXES = {
    "simple": {"hoodie.index.type": "SIMPLE"},
    "bloom": {"hoodie.index.type": "BLOOM"},
    "bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
}


class Announced:
    """What writes had announced when they committed, and what they committed."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.files: set[str] = set()
        self.committed: set[str] = set()

    def note(self, storage: Storage, instant: str, metadata: CommitMetadata) -> list[str]:
        folder = marker_folder(instant)
        self.paths = {path for path, _ in list_markers(storage, instant)}
        self.files = {each.path[len(folder) + 1 :] for each in storage.list(folder, recursive=True)}
        self.committed = set(metadata.file_paths())
        return []


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> Iterator[Announced]:
    found = Announced()
    monkeypatch.setattr(transaction, "delete_unwanted_files", found.note)
    yield found


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_an_upsert_of_stored_keys_has_one_file_of_markers_that_are_all_committed(
    index: str, table_type: str, spark: Any, tmp_path: Path, announced: Announced
) -> None:
    table = keyed_table(spark, tmp_path / "t", table_type, options=INDEXES[index])
    table.upsert(spark.createDataFrame(FIRST, COLUMNS))
    table.upsert(spark.createDataFrame([(each[0], 2, each[2], "new") for each in FIRST[:20]], COLUMNS))

    assert announced.files == {"MARKERS.type", "MARKERS0"}
    assert announced.paths == announced.committed and len(announced.committed) >= 3
    assert [row.v for row in table.snapshot().sort("id").collect()] == ["new"] * 20 + ["old"] * 10


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_new_rows_that_stored_files_take_are_foreseen_and_new_file_groups_are_not(
    table_type: str, spark: Any, tmp_path: Path, announced: Announced
) -> None:
    table = keyed_table(spark, tmp_path / "t", table_type)
    table.upsert(spark.createDataFrame(FIRST, COLUMNS))
    more = [(0, 2, "a", "new"), (40, 2, "a", "new"), (41, 2, "b", "new"), (42, 2, "d", "new")]
    table.upsert(spark.createDataFrame(more, COLUMNS))

    assert announced.files == {"MARKERS.type", "MARKERS0", "MARKERS1"}
    assert announced.paths == announced.committed and len(announced.committed) == 3
    assert table.snapshot().where("v = 'new'").count() == 4


def test_files_whose_rows_do_not_change_are_not_waited_for(
    spark: Any, tmp_path: Path, announced: Announced
) -> None:
    table = keyed_table(spark, tmp_path / "t", options={"hoodie.engine.skip.unchanged": "true"})
    table.upsert(spark.createDataFrame(FIRST, COLUMNS))
    table.upsert(spark.createDataFrame([FIRST[0], (1, 2, "b", "new"), FIRST[2]], COLUMNS))

    assert announced.paths == announced.committed and len(announced.committed) == 1
    assert not (tmp_path / "t" / ".hoodie" / ".temp").exists() or not any(
        (tmp_path / "t" / ".hoodie" / ".temp").iterdir()
    )

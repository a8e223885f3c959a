"""The files of the archive: how many entries a block has, and which files are merged."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.logformat.reader import read_blocks
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.archive_files import list_archive_files
from hudi_engine.table.services import archive

from tests.unit.services import tables

LIMITS = {"keep__min__commits": 2, "keep__max__commits": 3, "clean__commits__retained": 1}


def archived(storage: Storage) -> list[bytes]:
    folder = TableConfig.load(storage).archive_folder
    return [storage.read(file.path) for file in list_archive_files(storage, folder)]


@pytest.mark.parametrize(("batch", "blocks"), [(100, 1), (1, 2)])
def test_a_block_of_the_archive_has_the_entries_that_are_asked_for(
    tmp_path: Path, batch: int, blocks: int
) -> None:
    table = tables.copy_on_write(tmp_path / "t", 5)
    before = tables.rows(table.storage)
    # Two commits go, with an entry each.
    assert archive(table.storage, tables.options(**LIMITS, commits__archival__batch=batch)).instants
    (file,) = archived(table.storage)
    assert len(list(read_blocks(file))) == blocks
    assert tables.rows(table.storage) == before


@pytest.mark.parametrize(("limit", "files"), [(1, 2), (10**9, 1)])
def test_only_files_up_to_the_limit_are_merged(tmp_path: Path, limit: int, files: int) -> None:
    table = tables.copy_on_write(tmp_path / "t", 5)
    merging = {
        "archive__merge__enable": "true",
        "archive__merge__files__batch__size": 2,
        "archive__merge__small__file__limit__bytes": limit,
    }
    archive(table.storage, tables.options(**LIMITS, **merging))
    for number in (6, 7):
        table.commit({tables.DAY_1: {tables.GROUP_1: tables.batch({"a": number}, tables.DAY_1)}})
    archive(table.storage, tables.options(**LIMITS, **merging))
    assert len(archived(table.storage)) == files
    assert tables.rows(table.storage) == {"a": 7}

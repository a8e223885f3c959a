"""The files of the archive: how many entries a block has; they are not merged."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import ConfigError, ServiceError
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


def test_an_archive_that_hudi_was_merging_is_refused(tmp_path: Path) -> None:
    table = tables.copy_on_write(tmp_path / "t", 5)
    table.storage.create(".hoodie/archived/mergeArchivePlan", b"")
    with pytest.raises(ServiceError, match="archive the table with Apache Hudi once"):
        archive(table.storage, tables.options(**LIMITS))
    assert archived(table.storage) == []


def test_merging_files_of_the_archive_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="hoodie.archive.merge.enable is 'true'; legal values: false"):
        tables.options(archive__merge__enable="true")

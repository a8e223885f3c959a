"""The file that makes a folder a partition."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.errors import DataError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.partition_metadata import (
    begin_partition,
    ensure_partition_metadata,
    format_partition_metadata,
)
from hudi_engine.format.storage.local import LocalStorage

T = "20240418173213674"


@pytest.mark.parametrize(("partition", "depth"), [("", 0), ("dt=1", 1), ("2024/04/18", 3)])
def test_depth_counts_the_folders_below_the_table(partition: str, depth: int) -> None:
    written = format_partition_metadata(partition, T)

    assert written.startswith(b"#partition metadata\n#")
    assert written.endswith(f"\ncommitTime={T}\npartitionDepth={depth}\n".encode())


def test_it_is_written_once_and_never_changed(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))

    ensure_partition_metadata(storage, "dt=1", T)
    ensure_partition_metadata(storage, "dt=1", "20990101000000000")
    ensure_partition_metadata(storage, "", T)

    assert f"commitTime={T}\n".encode() in storage.read("dt=1/.hoodie_partition_metadata")
    assert b"partitionDepth=0\n" in storage.read(".hoodie_partition_metadata")


@pytest.mark.parametrize(("mine", "theirs"), [("a/b", "a"), ("a", "a/b/c")])
def test_of_two_that_nest_and_begin_at_once_one_sees_the_other_and_leaves_nothing(
    tmp_path: Path, mine: str, theirs: str
) -> None:
    class Overtaken(LocalStorage):
        def create(self, path: str, data: bytes) -> None:
            super().create(path, data)
            ensure_partition_metadata(LocalStorage(str(tmp_path)), theirs, T)

    config = TableConfig({"hoodie.table.partition.fields": "dt"})
    with pytest.raises(DataError, match=r"partition 'a/b.*' would lie inside of partition 'a'"):
        begin_partition(Overtaken(str(tmp_path)), config, mine, T)

    found = {str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*") if each.is_file()}
    assert found == {f"{theirs}/.hoodie_partition_metadata"}
    assert mine == "a" or not (tmp_path / mine).exists()

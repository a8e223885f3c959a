"""The file that makes a folder a partition."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.filegroup.partition_metadata import (
    ensure_partition_metadata,
    format_partition_metadata,
)
from hudi_engine.storage.local import LocalStorage

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

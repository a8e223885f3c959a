"""Tables that Apache Hudi 0.15.0 and 1.2.0 wrote with a metadata table."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
from hudi_engine.format.storage.local import LocalStorage

FOLDER = Path(__file__).resolve().parent / "tables"
NAMES = tuple(sorted(each.stem for each in FOLDER.glob("*.zip")))
ALL_INDEXES, LOG_STATS = "cow_v9_all_indexes_h120", "mor_v9_metadata_log_stats_h120"
PARTITIONED_INDEX = "cow_v9_metadata_partitioned_record_index_h120"
TYPES = "cow_v9_metadata_nonpartitioned_types_h120"
OLD_STATS, OLD_INDEX = "cow_v6_metadata_colstats_bloom_h120", "mor_v6_record_index_h120"
LISTED = {"hoodie.enable.data.skipping": "false"}
"""Options of a read that does not look at the metadata table."""


def unpack(name: str, folder: Path) -> str:
    """Unpack a table below a folder; gives its base path."""
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        archive.extractall(folder)
    return str(next(each.parent for each in sorted(folder.rglob(".hoodie")) if "metadata" not in each.parts))


@contextmanager
def opened_files() -> Iterator[list[str]]:
    """Collect the data files that are opened meanwhile, those of the metadata table left out."""
    found: list[str] = []
    open_input, read = LocalStorage.open_input, LocalStorage.read

    def note(path: str) -> None:
        if not path.startswith(".hoodie"):
            found.append(path)

    def noted_open(self: LocalStorage, path: str) -> pa.NativeFile:
        note(path)
        return open_input(self, path)

    def noted_read(self: LocalStorage, path: str) -> bytes:
        note(path)
        return read(self, path)

    with patch.object(LocalStorage, "open_input", noted_open), patch.object(LocalStorage, "read", noted_read):
        yield found

"""Merging small files of the archive into one (``hoodie.archive.merge.*``).

The plan is stored first, then the merged file is written, then the small ones go. A reader in between finds
entries twice and takes each once. Plan and recovery are those of Apache Hudi 0.15.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.declared.service_options import ArchiveOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.paths import join
from hudi_engine.format.timeline.archive_files import ArchiveFile, archive_file_path, list_archive_files
from hudi_engine.format.timeline.avro_file import decode_avro_file, encode_avro_file
from hudi_engine.format.timeline.schemas import MERGE_ARCHIVE_PLAN

logger = logging.getLogger(__name__)

_PLAN_NAME = "mergeArchivePlan"


def merge_small_files(storage: Storage, folder: str, options: Options) -> int:
    """Merge the newest files when enough of them are small; return how many went into one.

    Only files behind the newest large one are merged, so that their order stays.

    Args:
        folder: Archive folder, relative to the base path.
        options: ``hoodie.archive.merge.*``.
    """
    if not options[ArchiveOptions.MERGE]:
        return 0
    files = list_archive_files(storage, folder)
    small = _small(files, options[ArchiveOptions.MERGE_SMALL_FILE_LIMIT])
    if len(small) < options[ArchiveOptions.MERGE_FILES]:
        return 0
    merged = archive_file_path(folder, files[-1].number + 1)
    plan = {
        "candidate": [storage.uri(file.path) for file in small],
        "mergedArchiveFileName": merged.rpartition("/")[2],
    }
    storage.replace(join(folder, _PLAN_NAME), encode_avro_file(MERGE_ARCHIVE_PLAN, plan))
    storage.create(merged, b"".join(storage.read(file.path) for file in small))
    for file in small:
        storage.remove(file.path)
    storage.remove(join(folder, _PLAN_NAME))
    return len(small)


def finish_merge(storage: Storage, folder: str) -> None:
    """Undo or complete a merge that was killed; nothing happens when there is none.

    While all small files are there the merged one may be torn and goes; otherwise it is whole.

    Args:
        folder: Archive folder, relative to the base path.
    """
    path = join(folder, _PLAN_NAME)
    try:
        plan = decode_avro_file(storage.read(path), f"{storage.base}/{path}")
    except FileNotFoundError:
        return
    except CorruptTableError:
        logger.warning("dropping %s/%s, which was cut short", storage.base, path)
        storage.remove(path)
        return
    names = {str(each).rpartition("/")[2] for each in plan.get("candidate") or ()}
    files = {file.path.rpartition("/")[2]: file for file in list_archive_files(storage, folder)}
    merged = files.get(str(plan.get("mergedArchiveFileName")).rpartition("/")[2])
    if merged is not None:
        whole = not names <= set(files)
        going = [files[name] for name in sorted(names & set(files))] if whole else [merged]
        for file in going:
            storage.remove(file.path)
    storage.remove(path)


def _small(files: Sequence[ArchiveFile], limit: int) -> list[ArchiveFile]:
    """Return the files after the newest one that is larger than the limit, oldest first."""
    found: list[ArchiveFile] = []
    for file in reversed(files):
        if file.size > limit:
            break
        found.insert(0, file)
    return found

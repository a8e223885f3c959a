"""The plan of a clean: which files go, stored in ``T.clean.requested`` before any of them does.

Plans are read from the table and may be another writer's. They hold absolute paths of the machine that
wrote them, so only partition and file name of a path count, and only names of data files (Hudi table format,
clean).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_engine.errors import CorruptTableError, PathEscapeError
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.log_file import parse_log_file
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.paths import join, relative_path
from hudi_engine.format.timeline.avro_file import StoredPlan, encode_avro_file
from hudi_engine.format.timeline.schemas import CLEANER_PLAN

SAVEPOINTED = "savepointed_timestamps"
"""Extra metadata: savepoints that held files back, comma separated (Hudi 1.x)."""

_PLAN_VERSION = 2


@dataclass(frozen=True)
class RetainedInstant:
    """The oldest instant that can still be read after a clean."""

    time: str
    action: str


@dataclass(frozen=True)
class CleanPlan(StoredPlan):
    """What one clean deletes.

    Args:
        retained: Oldest instant that stays readable, None when the policy goes by file versions.
        last_completed: Newest completed write, ``""`` when there is none.
        files: Names of the files to delete, by partition path.
        extra: Texts that travel with the plan into the result.
        view: The partitions as they were looked at, None for a plan that was read from the table.
    """

    policy: str
    retained: RetainedInstant | None
    last_completed: str
    files: Mapping[str, tuple[str, ...]]
    extra: Mapping[str, str] = field(default_factory=dict)
    view: FileSystemView | None = field(default=None, compare=False, repr=False)

    @property
    def paths(self) -> Iterator[str]:
        """Paths of the files, relative to the base path."""
        for partition, names in self.files.items():
            for name in names:
                yield join(partition, name)

    def to_bytes(self, storage: Storage) -> bytes:
        """Encode as Hudi's ``HoodieCleanerPlan``, with the URIs Apache Hudi expects there."""
        retained = self.retained
        return encode_avro_file(
            CLEANER_PLAN,
            {
                "earliestInstantToRetain": None
                if retained is None
                else {"timestamp": retained.time, "action": retained.action, "state": "COMPLETED"},
                "lastCompletedCommitTimestamp": self.last_completed,
                "policy": self.policy,
                "filesToBeDeletedPerPartition": {},
                "version": _PLAN_VERSION,
                "filePathsToBeDeletedPerPartition": {
                    partition: [
                        {"filePath": storage.uri(join(partition, name)), "isBootstrapBaseFile": False}
                        for name in names
                    ]
                    for partition, names in self.files.items()
                },
                "partitionsToBeDeleted": [],
                "extraMetadata": dict(self.extra),
            },
        )

    @classmethod
    def _from_record(cls, record: Mapping[str, Any], source: str) -> CleanPlan:
        retained = record.get("earliestInstantToRetain")
        files = {
            relative_path(str(partition)): tuple(
                _name_in(str(partition), path, source) for path in dict.fromkeys(paths)
            )
            for partition, paths in planned_files(record).items()
        }
        return cls(
            str(record.get("policy") or ""),
            None if not retained else RetainedInstant(str(retained["timestamp"]), str(retained["action"])),
            str(record.get("lastCompletedCommitTimestamp") or ""),
            files,
            {str(key): str(value) for key, value in (record.get("extraMetadata") or {}).items()},
        )


def planned_files(record: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the paths of a stored plan by partition; plans of version 1 hold names in another field."""
    found: dict[str, list[str]] = {}
    for partition, names in (record.get("filesToBeDeletedPerPartition") or {}).items():
        found.setdefault(partition, []).extend(names)
    for partition, infos in (record.get("filePathsToBeDeletedPerPartition") or {}).items():
        found.setdefault(partition, []).extend(
            str(info["filePath"]) for info in infos if info.get("filePath")
        )
    return found


def _name_in(partition: str, path: str, source: str) -> str:
    name = path.rpartition("/")[2]
    if path != name and not f"/{path}".endswith(f"/{join(partition, name)}"):
        raise PathEscapeError(path, f"partition {partition!r}, in which {source} lists it")
    if parse_base_file(name, partition) is None and parse_log_file(name, partition) is None:
        raise CorruptTableError(
            f"{source} wants to delete {name!r} in partition {partition!r}, which is no data file. Nothing "
            "was deleted; look at the file, and remove it from the timeline if it is not Hudi's"
        )
    return name

"""The plan of a clean: which files go, stored in ``T.clean.requested`` before any of them does.

Plans are read from the table and may be another writer's. They hold absolute paths of the machine that
wrote them, so only partition and file name of a path count, and only names of data files (Hudi table format,
clean).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta, tzinfo
from typing import Any

from hudi_engine.errors import CorruptTableError, PathEscapeError
from hudi_engine.format.config.declared.service_options import CleanOptions
from hudi_engine.format.config.enums import CleanPolicy
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.base_file import parse_base_file
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.filegroup.log_file import parse_log_file
from hudi_engine.format.filegroup.view import FileSystemView
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.paths import join, relative_path
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.avro_file import StoredPlan, encode_avro_file
from hudi_engine.format.timeline.clock import format_instant, parse_instant_time
from hudi_engine.format.timeline.instant import COMPLETED_ACTION, WRITE_ACTIONS
from hudi_engine.format.timeline.schemas import CLEANER_PLAN
from hudi_engine.table.state import TableState

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


@dataclass(frozen=True)
class Policy:
    """A cleaning policy with its figure."""

    name: CleanPolicy
    amount: int  # commits, file versions or hours to keep

    @classmethod
    def from_options(cls, options: Options) -> Policy:
        """Take ``hoodie.clean.policy`` and the figure that belongs to it."""
        name = options[CleanOptions.POLICY]
        amount = {
            CleanPolicy.KEEP_LATEST_COMMITS: CleanOptions.COMMITS_RETAINED,
            CleanPolicy.KEEP_LATEST_FILE_VERSIONS: CleanOptions.FILE_VERSIONS_RETAINED,
            CleanPolicy.KEEP_LATEST_BY_HOURS: CleanOptions.HOURS_RETAINED,
        }[name]
        return cls(name, options[amount])

    @property
    def retains_instants(self) -> bool:
        """Whether the policy decides which instants stay readable."""
        return self.name != CleanPolicy.KEEP_LATEST_FILE_VERSIONS

    def earliest_retained(
        self, timeline: Timeline, now: str, needed: str | None = None
    ) -> RetainedInstant | None:
        """Return the oldest instant to retain, None when all of them are retained, or none by this policy.

        It is never later than a write or service that is still pending: what completes later must not have
        missed a clean.

        Args:
            needed: Oldest instant after which a registered reader needs the changes, None for none.
        """
        writes = timeline.completed_writes
        if self.name == CleanPolicy.KEEP_LATEST_COMMITS:
            if len(writes) <= self.amount:
                return None
            chosen = writes[len(writes) - self.amount]
        elif self.name == CleanPolicy.KEEP_LATEST_BY_HOURS:
            limit = self._limit(now, timeline.zone)
            later = [write for write in writes if write.requested_time >= limit]
            if not writes or (later and later[0] is writes[0]):
                return None
            chosen = later[0] if later else writes[-1]
        else:
            return None
        pending = [
            instant
            for instant in timeline.pending
            if instant.action in WRITE_ACTIONS or instant.action in COMPLETED_ACTION
        ]
        if pending and pending[0].requested_time < chosen.requested_time:
            before = [write for write in writes if write.requested_time < pending[0].requested_time]
            if not before:
                return None
            chosen = before[-1]
        if needed is not None and needed < chosen.requested_time:
            before = [write for write in writes if write.requested_time <= needed]
            if not before:
                return None
            chosen = before[-1]
        return RetainedInstant(chosen.requested_time, chosen.action)

    def _limit(self, now: str, zone: tzinfo | None) -> str:
        """Return the instant before which hours are no longer retained, ``""`` for hours that reach behind all dates."""
        try:
            return format_instant(parse_instant_time(now, zone) - timedelta(hours=self.amount), zone)
        except OverflowError:
            return ""

    def obsolete(
        self,
        view: FileSystemView,
        partition: str,
        retained: RetainedInstant | None,
        needed: str | None = None,
    ) -> Iterator[FileSlice]:
        """Yield the slices of a partition that the policy gives up."""
        replaced = view.replaced_groups
        for file_id, slices in view.all_slices(partition).items():
            replaced_at = replaced.get((partition, file_id))
            if replaced_at is not None:
                if (not self.retains_instants and (needed is None or replaced_at < needed)) or (
                    retained is not None and replaced_at < retained.time
                ):
                    yield from slices
                    continue
            if self.retains_instants:
                if retained is not None:
                    yield from _older(slices, retained.time)
            else:
                older = slices if needed is None else _older(slices, needed)
                yield from (each for each in slices[self.amount :] if each in older)


def _older(slices: Sequence[FileSlice], retained: str) -> list[FileSlice]:
    """Return the slices behind the newest one that is older than the retained instant."""
    before = [each for each in slices if each.base_instant < retained]
    return [each for each in before[1:] if each is not slices[0]]


COMPLETE = "hoodie.engine.clean.complete"
"""Extra metadata: ``true`` when a clean left nothing behind that its policy gave up, save what savepoints
hold."""


@dataclass(frozen=True)
class LastClean:
    """What the newest completed clean recorded."""

    since: str  # oldest instant that it retained, ``""`` when its policy goes by file versions
    complete: bool  # whether it left nothing behind that its policy gave up, save what savepoints held
    savepoints: frozenset[str]

    @property
    def left_nothing(self) -> bool:
        """Whether no file that was obsolete before ``since`` can be left."""
        return self.complete and not self.savepoints

    @classmethod
    def of(cls, state: TableState) -> LastClean | None:
        """Read it; None when the timeline has no clean, or an empty file."""
        cleans = [instant for instant in state.timeline.completed if instant.action == "clean"]
        if not cleans:
            return None
        record = state.timeline.record(cleans[-1])
        if not record:
            return None
        extra = record.get("extraMetadata") or {}
        partitions = (record.get("partitionMetadata") or {}).values()
        failed = any(each.get("failedDeleteFiles") for each in partitions)
        return cls(
            str(record.get("earliestCommitToRetain") or ""),
            extra.get(COMPLETE) == "true" and not failed,
            frozenset(str(extra.get(SAVEPOINTED) or "").split(",")) - {""},
        )


def partitions_to_clean(
    state: TableState, options: Options, retained: RetainedInstant | None
) -> frozenset[str] | None:
    """Return the partitions in which files can have become obsolete since the last clean; None for all.

    A file becomes obsolete when the oldest retained instant moves past a write that replaced it. So those are
    the partitions of the writes between the instant that the last clean retained and the one to retain now.
    All partitions are looked at when the last clean left something behind, a savepoint that held files back
    was deleted, or writes in between are archived.

    Args:
        retained: Oldest instant to retain, None when the policy goes by file versions.
    """
    if retained is None or not options[CleanOptions.INCREMENTAL]:
        return None
    last = LastClean.of(state)
    writes = state.timeline.completed_writes
    if (
        last is None
        or not last.complete
        or not last.savepoints <= {instant.requested_time for instant in state.timeline.savepoints}
        or not last.since
        or last.since < (state.timeline.first_write_time or "")
    ):
        return None
    found: set[str] = set()
    for write in writes:
        if last.since <= write.requested_time < retained.time:
            found |= state.timeline.commit_metadata(write).partitions
    return frozenset(found)

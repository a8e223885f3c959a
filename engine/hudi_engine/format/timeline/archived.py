"""The archived timeline: instants that left the active one.

Layout 1 appends records to ``.commits_.archive.N``, one a timeline file. Layout 2 keeps Parquet files, one
row an instant; ``_version_`` names the manifest that lists the files that count (Hudi timeline
specification).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.archive_files import list_archive_files, read_archive_log
from hudi_engine.format.timeline.avro_file import decode_avro_file
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.instant import WRITE_ACTIONS, Instant, State, newest_states

_COMMIT_FIELDS = ("hoodieCommitMetadata", "hoodieReplaceCommitMetadata")


class ArchivedTimeline:
    """Snapshot of the archived timeline.

    Attributes:
        instants: Archived instants in their newest state, by requested time. In layout 2 ``file_name`` is the
            Parquet file that holds the instant.
        cleaned_up_to: Oldest point in time whose files all archived cleans keep whole; ``""`` when none states one.
    """

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        instants: Iterable[Instant],
        metadata: dict[str, CommitMetadata],
        cleaned_up_to: str = "",
        changed: dict[tuple[str, str], str] | None = None,
        undone: dict[str, str] | None = None,
    ) -> None:
        self._storage = storage
        self._config = config
        self._metadata = metadata
        self.cleaned_up_to = cleaned_up_to
        self._changed = changed or {}
        self._undone = undone or {}
        self.instants: tuple[Instant, ...] = newest_states(instants)

    @classmethod
    def load(cls, storage: Storage, config: TableConfig) -> ArchivedTimeline:
        """Read the archive of a table; it is empty when nothing was archived."""
        if config.layout_version == 1:
            return cls(storage, config, *_load_layout_1(storage, config))
        return cls(storage, config, _load_layout_2(storage, config), {})

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """Return what an archived write wrote."""
        found = self._metadata.get(instant.requested_time)
        if found is None and self._config.layout_version != 1:
            found = self._read_layout_2_metadata(instant)
        if found is None:
            raise TimelineError(
                f"the archived timeline of {self._storage.base!r} holds no commit metadata of "
                f"{instant.action} {instant.requested_time}"
            )
        self._metadata[instant.requested_time] = found
        return found

    def changed_at(self, instant: Instant) -> str:
        """Return when the archived instant completed, as digits of the timeline; ``""`` when it does not say it."""
        known = self._changed.get((instant.requested_time, instant.action), "")
        return instant.completion_time or known

    @cached_property
    def undone(self) -> dict[str, str]:
        """Instants that archived rollbacks have taken back, in layout 2 restores too, with the one that did."""
        if self._config.layout_version == 1:
            return self._undone
        found: dict[str, str] = {}
        for instant in self.instants:
            if instant.action in ("rollback", "restore"):
                body = self._read_layout_2_body(instant)
                record = decode_avro_file(body, self._layout_2_path(instant)) if body else {}
                taken = record.get("commitsRollback") or record.get("instantsToRollback") or ()
                found.update(dict.fromkeys(taken, f"{instant.action} {instant.requested_time}"))
        return found

    @cached_property
    def completed_writes(self) -> tuple[Instant, ...]:
        """Archived writes that completed, by requested time."""
        return tuple(each for each in self.instants if each.is_completed and each.action in WRITE_ACTIONS)

    def _read_layout_2_metadata(self, instant: Instant) -> CommitMetadata | None:
        body = self._read_layout_2_body(instant)
        return CommitMetadata.from_bytes(body, self._layout_2_path(instant)) if body else None

    def _read_layout_2_body(self, instant: Instant) -> bytes | None:
        """Return what the completed file of an instant held."""
        rows = read_history_file(self._storage, self._layout_2_path(instant), ["instantTime", "metadata"])
        chosen = rows.filter(pc.equal(rows["instantTime"], instant.requested_time))["metadata"].to_pylist()
        return chosen[0] if chosen else None

    def _layout_2_path(self, instant: Instant) -> str:
        return f"{self._config.archive_folder}/{instant.file_name}"


def archived_completion_times(storage: Storage, config: TableConfig) -> dict[str, str]:
    """Return the completion times of archived instants of a layout 2 table, by requested time."""
    return {
        instant.requested_time: instant.completion_time
        for instant in _load_layout_2(storage, config)
        if instant.completion_time is not None
    }


def _load_layout_1(
    storage: Storage, config: TableConfig
) -> tuple[list[Instant], dict[str, CommitMetadata], str, dict[tuple[str, str], str], dict[str, str]]:
    instants: list[Instant] = []
    metadata: dict[str, CommitMetadata] = {}
    cleaned, changed, undone = "", dict[tuple[str, str], str](), dict[str, str]()
    for file in list_archive_files(storage, config.archive_folder):
        for record in read_archive_log(storage.read(file.path), file.path):
            instant = _archived_instant(record, file.path)
            instants.append(instant)
            if instant.is_completed:
                metadata.update(_archived_metadata(record, instant, file.path))
                cleaned = max(cleaned, _cleaned_up_to(record))
                key = (instant.requested_time, instant.action)
                changed[key] = str(record.get("stateTransitionTime") or "")
                undone.update(
                    dict.fromkeys(_taken_back(record), f"{instant.action} {instant.requested_time}")
                )
    return instants, metadata, cleaned, changed, undone


def _archived_instant(record: dict[str, Any], path: str) -> Instant:
    try:
        # Versions before 0.11 stored completed instants only and no state.
        state = State(record.get("actionState") or State.COMPLETED.value)
        return Instant(record["commitTime"], record["actionType"], state, None, path.rpartition("/")[2])
    except (KeyError, ValueError) as error:
        raise CorruptTableError(f"{path} holds an entry that is no instant: {error}") from error


def _archived_metadata(record: dict[str, Any], instant: Instant, path: str) -> dict[str, CommitMetadata]:
    for field in _COMMIT_FIELDS:
        if record.get(field) is not None:
            return {instant.requested_time: CommitMetadata.from_dict(record[field], path)}
    return {}


def _cleaned_up_to(record: dict[str, Any]) -> str:
    """Return how far back the clean of an entry left the table whole; a clean by versions keeps the newest."""
    clean = record.get("hoodieCleanMetadata") or {}
    return str(clean.get("earliestCommitToRetain") or clean.get("lastCompletedCommitTimestamp") or "")


def _taken_back(record: dict[str, Any]) -> list[str]:
    """Return the instants that the rollback of an entry has taken back; an archived restore does not say its own."""
    return list((record.get("hoodieRollbackMetadata") or {}).get("commitsRollback") or ())


def _load_layout_2(storage: Storage, config: TableConfig) -> list[Instant]:
    found = []
    for name in read_manifest(storage, config.archive_folder)[1]:
        rows = read_history_file(
            storage, f"{config.archive_folder}/{name}", ["instantTime", "completionTime", "action"]
        )
        for row in rows.to_pylist():
            found.append(
                Instant(row["instantTime"], row["action"], State.COMPLETED, row["completionTime"], name)
            )
    return found


def read_manifest(storage: Storage, folder: str) -> tuple[int, dict[str, int]]:
    """Return version and files of the current manifest, with their sizes; 0 and none where nothing was archived."""
    version = None
    for _ in range(2):  # the writer that archives may have taken the manifest away since its version was read
        version = _current_version(storage, folder)
        if version is None:
            return 0, {}
        try:
            manifest = json.loads(storage.read(f"{folder}/manifest_{version}"))
            return version, {entry["fileName"]: entry.get("fileLen", 0) for entry in manifest["files"]}
        except FileNotFoundError:
            continue
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptTableError(
                f"the manifest of the archived timeline in {folder} cannot be parsed: {error}"
            ) from error
    raise CorruptTableError(
        f"manifest_{version}, the current manifest of the archived timeline in {folder}, is missing"
    )


def _current_version(storage: Storage, folder: str) -> int | None:
    """Return the version that counts; the greatest while its file is replaced, which Hudi deletes and then makes again."""
    with suppress(FileNotFoundError):
        text = storage.read(f"{folder}/_version_").decode(errors="replace").strip()
        if text.isdecimal():
            return int(text)
    names = [each.name.rpartition("_") for each in storage.list(folder) if not each.is_dir]
    found = [int(version) for kind, _, version in names if kind == "manifest" and version.isdecimal()]
    return max(found, default=None)


def read_history_file(storage: Storage, path: str, columns: list[str]) -> pa.Table:
    """Read columns of a Parquet file of the history; CorruptTableError where it is damaged."""
    try:
        with storage.open_input(path) as source:
            return pq.ParquetFile(source).read(columns=columns)
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise CorruptTableError(f"{path} of the archived timeline cannot be read: {error}") from error

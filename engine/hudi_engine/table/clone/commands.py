"""Which instants the rollback commands in a slice's logs take back, as a reader of the slice knows it."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.logformat.reader import scan_blocks
from hudi_engine.format.logformat.source import FileSource
from hudi_engine.format.storage.base import Storage


class RollbackCommands:
    """The rollback commands of slices; the logs of a slice are looked through once, when one of them is asked about."""

    def __init__(self, storage: Storage, slices: Iterable[FileSlice]) -> None:
        self._storage = storage
        self._logs: dict[str, tuple[str, ...]] = {}
        for each in slices:
            logs = tuple(log.path for log in each.log_files)
            self._logs.update((log.path, logs) for log in (*each.log_files, *each.cdc_files))
        self._found: dict[tuple[str, ...], frozenset[str]] = {}

    def targets(self, path: str) -> frozenset[str]:
        """Return the instants that are taken back in the slice of a log, by commands of whatever time.

        Raises:
            FileNotFoundError: A log of the slice has gone since it was listed.
        """
        logs = self._logs[path]
        if logs not in self._found:
            self._found[logs] = frozenset(target for log in logs for target in self._in_log(log))
        return self._found[logs]

    def _in_log(self, path: str) -> list[str]:
        with self._storage.open_input(path) as file:
            targets = [each.target_instant_time for each in scan_blocks(FileSource(file)) if each.is_rollback]
        return [each for each in targets if each is not None]

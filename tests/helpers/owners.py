"""Owner files that tests leave for instants of writers that are elsewhere, or gone."""

from __future__ import annotations

import os

from hudi_engine.storage.base import Storage
from hudi_engine.storage.local import LocalStorage
from hudi_engine.txn.owner import Owner, heartbeat_path

DAY_S = 86_400


def write_owner(storage: Storage, instant: str, owner: Owner) -> None:
    """Write the heartbeat file of an instant."""
    storage.replace(heartbeat_path(instant), owner.to_json())


def age(storage: LocalStorage, *paths: str, seconds: float = DAY_S) -> None:
    """Make files older, by a day; all below the timeline folder when none is named."""
    chosen = paths or [each.path for each in storage.list(".hoodie", recursive=True) if not each.is_dir]
    for path in chosen:
        full = os.path.join(storage.base, path)
        old = os.stat(full).st_mtime - seconds
        os.utime(full, (old, old))

"""Who reads a table's changes, and from which commit on: clean and archive spare what a reader has not taken yet.

A reader is registered only on request, and forgotten when its time is over, so that one that went away holds nothing
for ever. Each is a small file in ``.hoodie/.consumers``, which Apache Hudi does not look at: its own services spare nothing.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from dataclasses import dataclass

from hudi_engine.errors import ConfigError, CorruptTableError
from hudi_engine.format.config.properties_file import HOODIE_FOLDER
from hudi_engine.format.storage.base import TEMP_PREFIX, Storage

CONSUMERS = f"{HOODIE_FOLDER}/.consumers"


@dataclass(frozen=True)
class Consumer:
    """A reader of a table's changes.

    Args:
        instant: Requested time of the last commit it has taken; later changes are kept for it.
    """

    name: str
    instant: str
    until_ms: int


def register_consumer(storage: Storage, name: str, instant: str, hours: float) -> Consumer:
    """Keep the changes after an instant for a reader, in place of what was kept for it before."""
    if not name.strip() or not (instant.isascii() and instant.isdigit()) or not 0 < hours < math.inf:
        raise ConfigError(
            f"a consumer is registered with name {name!r}, instant {instant!r} and {hours} hours; legal values: a name, the digits "
            "of a commit and a time above 0"
        )
    found = Consumer(name, instant, int((time.time() + hours * 3600) * 1000))
    text = json.dumps({"name": found.name, "instant": found.instant, "until_ms": found.until_ms})
    storage.replace(_path(name), text.encode())
    return found


def forget_consumer(storage: Storage, name: str) -> bool:
    """Keep nothing for a reader any more; return whether it was registered."""
    return storage.delete(_path(name))


def list_consumers(storage: Storage) -> list[Consumer]:
    """Return the readers whose time is not over, by name."""
    found = [
        _parsed(storage.read(status.path), status.path)
        for status in storage.list(CONSUMERS)
        if not status.is_dir and status.name.endswith(".json") and not status.name.startswith(TEMP_PREFIX)
    ]
    now = time.time() * 1000
    return sorted((each for each in found if each.until_ms > now), key=lambda each: each.name)


def oldest_needed(storage: Storage) -> str | None:
    """Return the oldest instant after which some reader needs the changes, None when none is registered."""
    return min((each.instant for each in list_consumers(storage)), default=None)


def _path(name: str) -> str:
    return f"{CONSUMERS}/{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"


def _parsed(data: bytes, path: str) -> Consumer:
    try:
        raw = json.loads(data)
        found = Consumer(str(raw["name"]), str(raw["instant"]), int(raw["until_ms"]))
        if found.instant.isdigit():
            return found
    except (ValueError, KeyError, TypeError):
        pass
    raise CorruptTableError(
        f"{path} does not say which changes are kept for whom, so nothing is cleaned or archived. Delete the file, and let its "
        "reader register again"
    )

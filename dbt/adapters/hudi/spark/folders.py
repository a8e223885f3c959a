"""Folders of tables on storage: moved, removed, and tried out before tables are made in them."""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
from collections.abc import Mapping
from pathlib import Path

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.errors import HudiError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.storage import open_storage
from hudi_engine.format.storage.uris import real_location
from hudi_engine.spark.catalog.rebuilds import is_read_only
from hudi_engine.table.txn.swap import move_table
from hudi_engine.table.txn.table_folder import delete_table, place_of

_PROBE = ".dbt_hudi_probe"
# of the layouts 1 and 2
_TIMELINE_FOLDERS = (".hoodie", ".hoodie/timeline")


def make_root(root: str, *, writes: bool = False) -> None:
    """Make the folder of tables unless it is there, with a .gitignore; refuse one that cannot be written to."""
    try:
        if "://" in root:
            open_storage(root).list("")
        elif Path(root).exists() and not Path(root).is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        else:
            Path(root).mkdir(parents=True, exist_ok=True)
            read_only = is_read_only(root)
            if writes and read_only:
                raise PermissionError(errno.EACCES, "dbt may not write there; nothing was run")
            if not read_only and not any(Path(root).iterdir()):
                (Path(root) / ".gitignore").write_text("*\n", encoding="utf-8")
    except (HudiError, OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DbtRuntimeError(
            f"location_root is {root!r}, which cannot hold tables: {reason}. Set a folder or URI in the profile that dbt may write "
            "to, or make it"
        ) from error


def remove_at_exit_if_empty(root: str) -> None:
    """Have a folder that is not there yet removed when the process ends, should it be empty then: Spark makes it as it starts."""
    if "://" in root or Path(root).exists():
        return

    def remove() -> None:
        with contextlib.suppress(OSError):
            Path(root).rmdir()

    atexit.register(remove)


def remove_folder(base: str) -> None:
    """Delete a table's folder with all it holds; what is left by a removal that is cut off is no table."""
    parent, name = _split(base)
    delete_table(open_storage(parent), name)


def remove_schema_folder(base: str) -> None:
    """Delete a schema's folder with all it holds; of a symbolic link only the link goes."""
    parent, name = _split(base)
    storage = open_storage(parent)
    if not os.path.islink(f"{storage.base}/{name}"):
        for each in storage.list(name):
            if each.is_dir:
                delete_table(storage, each.path)
    storage.delete_tree(name)


def move_folder(source: str, target: str, options: Mapping[str, str]) -> None:
    """Move a table's folder; FileExistsError when something is at the target."""
    resolved = resolve_options(options)
    source_parent, source_name = _split(source)
    target_parent, target_name = _split(target)
    if source_parent == target_parent:
        move_table(open_storage(source_parent), source_name, target_name, resolved)
        return
    common = _common_parent(source_parent, target_parent)
    storage = open_storage(common)
    storage.make_dirs(target_parent[len(common) + 1 :])
    move_table(storage, source[len(common) + 1 :], target[len(common) + 1 :], resolved)


def probe_writable(base: str) -> None:
    """Write and remove a small file below a folder, to find out whether tables can be made there."""
    storage = open_storage(base)
    storage.replace(_PROBE, b"ok")
    storage.delete(_PROBE)


def timeline_mark(base: str) -> str:
    """Return a text that changes with every step of a table's timeline; costs a listing or two."""
    storage = open_storage(base)
    listed = [*storage.list(_TIMELINE_FOLDERS[0]), *storage.list(_TIMELINE_FOLDERS[1])]
    return "\n".join(status.path for status in listed if not status.is_dir)


def table_around(base: str) -> str | None:
    """Return the nearest folder above one that is a Hudi table; None where none is that can be read."""
    place = place_of(real_location(base))
    while place is not None:
        with contextlib.suppress(OSError, HudiError):
            if place.parent.exists(PROPERTIES_PATH):
                return place.parent.base
        place = place_of(place.parent.base)
    return None


def _split(base: str) -> tuple[str, str]:
    parent, _, name = base.rstrip("/").rpartition("/")
    return parent or "/", name


def _common_parent(left: str, right: str) -> str:
    common = []
    for one, other in zip(left.split("/"), right.split("/")):
        if one != other:
            break
        common.append(one)
    if not "/".join(common).strip("/"):
        raise DbtRuntimeError(
            f"a table cannot be moved from {left} to {right}; rebuild it at the other place"
        )
    return "/".join(common)

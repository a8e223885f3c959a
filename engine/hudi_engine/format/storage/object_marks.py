"""Marks of folders: empty objects whose keys end with a slash, by which Hadoop and the stores' consoles make folders.

The client drops the slash, so in a listing a mark looks like an empty file, and no call of the client deletes one. What is below
one, or a second look, distinguishes it from a file; a folder that has nothing but marks is as good as none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import obstore

from hudi_engine.format.storage import paths

if TYPE_CHECKING:
    from obstore import ObjectMeta

    from hudi_engine.format.storage.object_client import ObjectClient

FOLDER_MARK = ".folder"
"""Object of this engine that keeps an empty folder in being; it is shown to no one."""
_EMPTY_FILE = re.compile(r"\.(requested|inflight|marker\.[A-Z]+)$")
"""Files that every writer leaves empty, for which no one has to look a second time."""
_PAGE = 1000


def marks_among(client: ObjectClient, listed: Mapping[str, int]) -> set[str]:
    """Return those of the listed objects that are marks and no files, with one request for each folder that may have some."""
    doubtful: dict[str, set[str]] = {}
    for path, size in listed.items():
        if size == 0 and _EMPTY_FILE.search(path) is None:
            doubtful.setdefault(paths.parent(path), set()).add(path)
    found: set[str] = set()
    for folder, inside in doubtful.items():
        with client.errors(folder):
            page = obstore.list_with_delimiter(client.store, folder or None)
        # what was removed meanwhile is neither, and stays what it was taken for
        found |= inside & {*page["common_prefixes"]} - {each["path"] for each in page["objects"]}
    return found


def holds_objects(client: ObjectClient, folder: str) -> bool:
    """Return whether there is an object below a folder that is no other program's mark."""
    with client.errors(folder):
        for page in obstore.list(client.store, folder or None, chunk_size=_PAGE):
            below = {each["path"]: each["size"] for each in page if len(each["path"]) > len(folder)}
            if any(size or path.endswith(f"/{FOLDER_MARK}") for path, size in below.items()):
                return True
            if set(below) - marks_among(client, below):
                return True
    return False


def delete_objects(client: ObjectClient, folder: str, pages: Iterable[Iterable[ObjectMeta]]) -> None:
    """Delete what was listed below a folder; of what is not there by its path, such as marks, no error is raised."""
    for page in pages:
        listed = [each["path"] for each in page]
        try:
            with client.errors(folder):
                obstore.delete(client.store, listed)
        except FileNotFoundError:
            # not every service deletes many at once; those that delete one by one stop at the first that is missing
            for path in listed:
                _delete_if_there(client, path)


def _delete_if_there(client: ObjectClient, path: str) -> None:
    try:
        with client.errors(path):
            obstore.delete(client.store, path)
    except FileNotFoundError:
        return

"""Object stores: S3 and what speaks its protocol, Google Cloud Storage, Azure.

An object appears whole or not at all, and :meth:`ObjectStorage.create` is a conditional put, so one of several writers
wins. Where a service takes the condition and does not obey it, :attr:`ObjectStorage.exclusive_create` is False.
"""

from __future__ import annotations

import errno
import io
import logging
import os
import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import IO, TYPE_CHECKING

import obstore
import pyarrow as pa

from hudi_engine.errors import PathEscapeError
from hudi_engine.format.storage import paths
from hudi_engine.format.storage.base import TEMP_PREFIX, FileStatus, Listing, SpooledStorage
from hudi_engine.format.storage.object_client import ChangedMeanwhileError, ObjectClient
from hudi_engine.format.storage.uris import StoreKind

if TYPE_CHECKING:
    from obstore import ObjectMeta, UpdateVersion

    from hudi_engine.format.storage.object_client import ObjectClient

FOLDER_MARK = ".folder"
"""Object of this engine that keeps an empty folder in being; it is shown to no one."""
_EMPTY_FILE = re.compile(r"\.(requested|inflight|marker\.[A-Z]+)$")
"""Files that every writer leaves empty, for which no one has to look a second time."""


# Hadoop and the stores' consoles make folders of empty objects whose keys end with a slash. The client drops the slash, so in a
# listing such a mark looks like an empty file, and no call of the client deletes it.
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


logger = logging.getLogger(__name__)

_KNOWN: dict[tuple[str, str], bool] = {}
"""By address of a service and bucket, what it answered this process."""


def creates_exclusively(client: ObjectClient, root: str) -> bool:
    """Return whether a conditional create has one winner in a bucket.

    S3 and Azure document it. Services that speak their protocols may ignore the condition, so they are tested once with an
    object of no meaning; so is Google's, whose protocol is run against no server in the tests.
    """
    address = client.address
    if not address and client.kind is not StoreKind.GCS:
        return True
    key = (address, client.bucket)
    if key not in _KNOWN:
        _KNOWN[key] = _ask(client, f"{root}/{TEMP_PREFIX}probe-{uuid.uuid4().hex}".lstrip("/"))
        if not _KNOWN[key]:
            logger.warning(
                "%s does not create a file only if it is absent: writers cannot exclude each other",
                address or client.public,
            )
    return _KNOWN[key]


def _ask(client: ObjectClient, path: str) -> bool:
    import obstore

    try:
        with client.errors(path):
            obstore.put(client.store, path, b"first", mode="create")
        try:
            with client.errors(path):
                obstore.put(client.store, path, b"second", mode="create")
        except FileExistsError:
            return True
        return False
    except OSError as error:
        # 501: the service knows that it cannot
        if "501" in str(error) or "NotImplemented" in str(error) or error.errno == 95:
            return False
        raise
    finally:
        with suppress(OSError), client.errors(path):
            obstore.delete(client.store, path)


_WHOLE_BYTES = 4 * 1024 * 1024
"""Up to this size an object is read whole: a request more costs as much as the bytes."""


def open_object(client: ObjectClient, path: str) -> pa.NativeFile:
    """Open an object for random access."""
    with client.errors(path):
        found = _begun(client, path)
        size = found.meta["size"]
        if size <= _WHOLE_BYTES:
            return pa.BufferReader(pa.py_buffer(found.bytes().to_bytes()))
    return pa.PythonFile(_Ranges(client, path, size), mode="r")


def _begun(client: ObjectClient, path: str) -> obstore.GetResult:
    """Ask for as much as is read whole; the answer shows the size too, and a large object is not sent for nothing."""
    try:
        return obstore.get(client.store, path, options={"range": (0, _WHOLE_BYTES)})
    except obstore.exceptions.GenericError as error:
        # an empty object has no range, and some services send none
        if "range" not in str(error).lower():
            raise
        return obstore.get(client.store, path)


class _Ranges(io.RawIOBase):
    """A large object as a file: each read is one request for a range."""

    def __init__(self, client: ObjectClient, path: str, size: int) -> None:
        self._client = client
        self._path = path
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def size(self) -> int:
        """Size in bytes, which pyarrow requests."""
        return self._size

    def read(self, size: int | None = -1) -> bytes:
        end = self._size if size is None or size < 0 else min(self._at + size, self._size)
        if end <= self._at:
            return b""
        with self._client.errors(self._path):
            data = obstore.get_range(self._client.store, self._path, start=self._at, end=end).to_bytes()
        self._at += len(data)
        return data


SMALL_BYTES = 16 * 1024 * 1024
"""Up to this size a file is one request, and its creation conditional."""
_PART_BYTES = 8 * 1024 * 1024
_MAX_PARTS = 9_000
"""Stores take ten thousand parts."""
_ATTEMPTS = 4
_FIRST_PAUSE_S = 0.1
_TOKEN = "hudiput"  # noqa: S105 - the name of an attribute
"""Metadata of an object that shows which create has made it."""


def create_object(client: ObjectClient, path: str, data: bytes) -> None:
    """Create an object if it is absent, and find out whether it was this call that did.

    A request that failed may have been carried out, and the client repeats requests by itself: then "exists already"
    would be reported for our own object. So each create carries a token, and after anything but a plain success it is read
    back, or the create tried again; a request that is late does no harm, since it is conditional too.
    """
    token, pause = uuid.uuid4().hex, _FIRST_PAUSE_S
    for left in range(_ATTEMPTS - 1, -1, -1):
        try:
            with client.errors(path):
                obstore.put(
                    client.store, path, data, mode="create", attributes={_TOKEN: token}, use_multipart=False
                )
            return
        except FileExistsError:
            maker = _maker(client, path)
            if maker == token:
                return
            # A missing object: the service was busy with a delete of it (409), and reports so with the same words.
            if maker is not None or not left:
                raise
        except PermissionError:
            raise
        except OSError:
            if not left:
                with suppress(OSError):
                    if _maker(client, path) == token:
                        return
                raise
        time.sleep(pause)
        pause *= 2


def replace_object(client: ObjectClient, path: str, data: bytes) -> None:
    """Create or overwrite an object."""
    with client.errors(path):
        obstore.put(client.store, path, data, chunk_size=SMALL_BYTES)


def change_object(client: ObjectClient, path: str, before: bytes, data: bytes) -> None:
    """Write an object again, if it is still what it was."""
    with client.errors(path):
        found = obstore.get(client.store, path)
        meta, content = found.meta, found.bytes().to_bytes()
        if content != before:
            raise FileNotFoundError
        seen: UpdateVersion = {}
        if meta["e_tag"] is not None:
            seen["e_tag"] = meta["e_tag"]
        if meta["version"] is not None:
            seen["version"] = meta["version"]
        try:
            with client.errors(path):
                obstore.put(client.store, path, data, mode=seen, use_multipart=False)
        except ChangedMeanwhileError:
            # The client may have repeated a request of ours that had been carried out.
            if obstore.get(client.store, path).bytes().to_bytes() != data:
                raise FileNotFoundError from None


def upload_object(
    client: ObjectClient, path: str, source: IO[bytes], size: int, before_publish: Callable[[], None]
) -> None:
    """Upload a large file in parts; the object appears with the last one, before which ``before_publish`` may cancel it."""
    part = max(_PART_BYTES, size // _MAX_PARTS)
    with (
        client.errors(path),
        obstore.open_writer(client.store, path, buffer_size=part, max_concurrency=4) as sink,
    ):
        while chunk := source.read(_PART_BYTES):
            sink.write(chunk)
        before_publish()


def _maker(client: ObjectClient, path: str) -> str | None:
    """Return the token of the create that made an object, ``""`` when it has none; None when it is missing."""
    with suppress(FileNotFoundError), client.errors(path):
        return str(obstore.get(client.store, path, options={"head": True}).attributes.get(_TOKEN, ""))
    return None


_PAGE = 1000


class ObjectStorage(SpooledStorage):
    """The objects below one key prefix of a bucket.

    Args:
        spark_base: The same place as Spark's file systems spell it, such as ``s3a://bucket/table``.
    """

    renames_folders = False

    def __init__(self, base: str, client: ObjectClient, root: str, spark_base: str) -> None:
        self.base = base
        self._client = client
        self._root = root
        self._spark_base = spark_base
        self._exclusive: bool | None = None

    def __repr__(self) -> str:
        return f"ObjectStorage({self.base!r})"

    @property
    def exclusive_create(self) -> bool:  # type: ignore[override]
        """Whether the service obeys the condition of a conditional put; one that is not the vendor's own is queried."""
        if self._exclusive is None:
            self._exclusive = creates_exclusively(self._client, self._root)
        return self._exclusive

    def read(self, path: str) -> bytes:
        full = self._full(path)
        with self._client.errors(full):
            return obstore.get(self._client.store, full).bytes().to_bytes()

    def read_start(self, path: str, size: int) -> bytes:
        full = self._full(path)
        with self._client.errors(full):
            return obstore.get_range(self._client.store, full, start=0, end=size).to_bytes()

    def stat(self, path: str) -> FileStatus | None:
        full = self._full(path)
        if path:
            with suppress(FileNotFoundError), self._client.errors(full):
                return _status(obstore.head(self._client.store, full), path)
        return FileStatus(path, 0, 0, True) if holds_objects(self._client, full) else None

    def list(self, path: str, recursive: bool = False, skip: frozenset[str] = frozenset()) -> Listing:
        full = self._full(path)
        start = len(self._root) + 1 if self._root else 0
        found: dict[str, FileStatus] = {}
        for each in self._listed(full, recursive, found, start):
            # one of the folder's own name is another program's mark of it
            if len(each["path"]) > len(full) and not each["path"].endswith(f"/{FOLDER_MARK}"):
                status = _status(each, each["path"][start:])
                found.setdefault(status.path, status)
            _add_folders(found, each["path"][start:], path)
        if recursive:
            self._show_marks_as_folders(found)
        kept = [each for each in found.values() if not _skipped(each, path, skip)]
        kept.sort(key=lambda status: status.path)
        return kept

    def list_after(self, path: str, after: str = "") -> Listing:
        """List the objects below a folder from a text on: the service leaves out those before it."""
        if not after:
            return super().list_after(path)
        full, start = self._full(path), len(self._root) + 1 if self._root else 0
        offset = paths.join(self._root, after)
        with self._client.errors(full):
            pages = obstore.list(self._client.store, full or None, offset=offset, chunk_size=_PAGE)
            found = [_status(each, each["path"][start:]) for page in pages for each in page]
        marks = marks_among(self._client, {self._full(each.path): each.size for each in found})
        kept = (each for each in found if each.name != FOLDER_MARK and self._full(each.path) not in marks)
        return sorted(kept, key=lambda each: each.path)

    def create(self, path: str, data: bytes) -> None:
        full = self._full(path)
        if self.exclusive_create:
            create_object(self._client, full, data)
            return
        self._refuse_existing(path)
        replace_object(self._client, full, data)

    def replace(self, path: str, data: bytes) -> None:
        replace_object(self._client, self._full(path), data)

    def refresh(self, path: str, data: bytes) -> None:
        if self.exclusive_create:
            change_object(self._client, self._full(path), data, data)
        else:
            self.replace(path, data)

    def take_over(self, path: str, before: bytes, data: bytes) -> None:
        if self.exclusive_create:
            change_object(self._client, self._full(path), before, data)
        else:
            super().take_over(path, before, data)

    def delete(self, path: str) -> bool:
        full = self._full(path)
        try:
            with self._client.errors(full):
                obstore.head(self._client.store, full)
                obstore.delete(self._client.store, full)
        except FileNotFoundError:
            return False
        return True

    def remove(self, path: str) -> None:
        full = self._full(path)
        with suppress(FileNotFoundError), self._client.errors(full):
            obstore.delete(self._client.store, full)

    def delete_tree(self, path: str) -> None:
        if path == "":
            raise PathEscapeError(path, self.base)
        full = self._full(path)
        with self._client.errors(full):
            pages = obstore.list(self._client.store, full, chunk_size=_PAGE)
            delete_objects(self._client, full, pages)
        with suppress(FileNotFoundError), self._client.errors(full):
            obstore.delete(self._client.store, full)

    def rename(self, source: str, target: str) -> None:
        status = self.stat(source)
        if status is None:
            raise FileNotFoundError(errno.ENOENT, "no such file or folder", f"{self.base}/{source}")
        self._refuse_existing(target)
        if not status.is_dir:
            self.copy(source, target)
            self.remove(source)
            return
        # There are no folders to rename: copy all of it first, so that an interruption loses nothing.
        full = self._full(source)
        with self._client.errors(full):
            pages = obstore.list(self._client.store, full, chunk_size=_PAGE)
            keys = {each["path"]: each["size"] for page in pages for each in page if each["path"] != full}
        for key in sorted(keys.keys() - marks_among(self._client, keys)):
            inside = key[len(full) + 1 :]
            self.copy(f"{source}/{inside}", f"{target}/{inside}")
        self.delete_tree(source)

    def copy(self, source: str, target: str) -> None:
        old, new = self._full(source), self._full(target)
        with self._client.errors(old):
            obstore.copy(self._client.store, old, new)

    def share(self, source: str, target: str) -> None:
        self.copy(source, target)

    def make_dirs(self, path: str) -> None:
        if self.stat(path) is None:
            replace_object(self._client, self._full(paths.join(path, FOLDER_MARK)), b"")

    def open_input(self, path: str) -> pa.NativeFile:
        return open_object(self._client, self._full(path))

    def uri(self, path: str = "") -> str:
        return f"{self._spark_base}/{self.checked(path)}" if path else self._spark_base

    def _upload(self, path: str, source: IO[bytes], before_publish: Callable[[], None]) -> None:
        def publish() -> None:
            before_publish()
            self._refuse_existing(path)

        size = source.seek(0, os.SEEK_END)
        source.seek(0)
        if size > SMALL_BYTES:
            upload_object(self._client, self._full(path), source, size, publish)
            return
        data = source.read()
        before_publish()
        self.create(path, data)

    def _listed(
        self, full: str, recursive: bool, found: dict[str, FileStatus], start: int
    ) -> Sequence[ObjectMeta]:
        """Return the objects of a folder; what is not requested goes to ``found`` as folders."""
        with self._client.errors(full):
            if recursive:
                pages = obstore.list(self._client.store, full or None, chunk_size=_PAGE)
                return [each for page in pages for each in page]
            page = obstore.list_with_delimiter(self._client.store, full or None)
        for prefix in page["common_prefixes"]:
            relative = prefix[start:].rstrip("/")
            found[relative] = FileStatus(relative, 0, 0, True)
        return page["objects"]

    def _show_marks_as_folders(self, found: dict[str, FileStatus]) -> None:
        empty = {self._full(path): path for path, each in found.items() if not (each.size or each.is_dir)}
        for mark in marks_among(self._client, dict.fromkeys(empty, 0)):
            found[empty[mark]] = FileStatus(empty[mark], 0, 0, True)

    def _full(self, path: str) -> str:
        return paths.join(self._root, self.checked(path))


def _status(meta: ObjectMeta, path: str) -> FileStatus:
    return FileStatus(path, meta["size"], round(meta["last_modified"].timestamp() * 1000), False)


def _add_folders(found: dict[str, FileStatus], path: str, top: str) -> None:
    """Add the folders between ``top`` and an object, which a store does not list."""
    folder = paths.parent(path)
    while len(folder) > len(top):
        known = found.get(folder)
        if known is not None and known.is_dir:
            return
        found[folder] = FileStatus(folder, 0, 0, True)
        folder = paths.parent(folder)


def _skipped(status: FileStatus, top: str, skip: frozenset[str]) -> bool:
    below = status.path[len(top) :].strip("/").split("/")
    return any(folder in skip for folder in (below if status.is_dir else below[:-1]))

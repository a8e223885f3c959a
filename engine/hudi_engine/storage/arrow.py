"""Object stores and remote file systems through pyarrow's own clients (S3, GCS, Azure, HDFS).

An object appears only when its upload is complete, which is what makes :meth:`ArrowStorage.replace` atomic.
None of pyarrow's clients offers a conditional put, so :attr:`ArrowStorage.exclusive_create` is False: one
writer at a time is safe, several are refused by whoever asks :meth:`Storage.require_exclusive_create`.
"""

from __future__ import annotations

import errno
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import takewhile
from typing import IO, BinaryIO, cast

import pyarrow as pa
from pyarrow import fs

from hudi_engine.errors import PathEscapeError, StorageError
from hudi_engine.storage.base import FileStatus, Listing, Storage, crc_path

_SPOOL_BYTES = 64 * 1024 * 1024
_COPY_BYTES = 8 * 1024 * 1024
_SECRET = re.compile(r"^[^@:]*:[^@]*@")
"""User and password in front of a host; they go to the client and nowhere else."""
_FLAT = frozenset({"s3", "gcs"})
"""pyarrow's names of stores that have keys only, no folders."""

_Access = tuple[str, str, str]
"""Authority with its credentials, ``?`` and query part of a URI."""
_GIVEN: dict[tuple[str, str], dict[str, _Access]] = {}
"""By scheme and bucket, what URIs of this process have said of how to reach places in it.

The engine names a table's place without credentials and settings from then on, so that they reach no message and no
metadata; they are found here again for that place, what lies below and beside it, and the folder above.
"""


class ArrowStorage(Storage):
    """A folder, or key prefix, of a pyarrow file system.

    Args:
        base: URI of the table without trailing slash, kept for messages and for :meth:`uri`.
        filesystem: The pyarrow file system; it is picklable and opens its connections where it is used.
        root: The table's path within ``filesystem``.
        spark_base: The same place as Spark's file systems spell it, such as ``s3a://bucket/table``.
    """

    def __init__(
        self, base: str, filesystem: fs.FileSystem, root: str, spark_base: str | None = None
    ) -> None:
        self.base = base
        self._filesystem = filesystem
        self._root = root.rstrip("/")
        self._spark_base = spark_base or base
        self.renames_folders = filesystem.type_name not in _FLAT

    def __repr__(self) -> str:
        return f"ArrowStorage({self.base!r})"

    def read(self, path: str) -> bytes:
        with self.open_input(path) as file:
            return bytes(file.read())

    def stat(self, path: str) -> FileStatus | None:
        info = self._filesystem.get_file_info(self._full(path))
        return None if info.type == fs.FileType.NotFound else _status(info, path)

    def list(self, path: str, recursive: bool = False, skip: frozenset[str] = frozenset()) -> Listing:
        full = self._full(path)
        selector = fs.FileSelector(full, allow_not_found=True, recursive=recursive)
        found = []
        # One flat listing is a request per thousand keys; entering folder by folder would be one per folder.
        for info in self._filesystem.get_file_info(selector):
            below = info.path[len(full) :].strip("/")
            relative = f"{path}/{below}" if path else below
            if below and not _skipped(below, info.type == fs.FileType.Directory, skip):
                found.append(_status(info, relative))
        found.sort(key=lambda status: status.path)
        return found

    def create(self, path: str, data: bytes) -> None:
        if self.stat(path) is not None:
            raise FileExistsError(errno.EEXIST, "the file exists already", f"{self.base}/{path}")
        self._put(path, data)

    def replace(self, path: str, data: bytes) -> None:
        self._remove(crc_path(path))
        self._put(path, data)

    def delete(self, path: str) -> bool:
        self._remove(crc_path(path))
        return self._remove(path)

    def delete_tree(self, path: str) -> None:
        if path == "":
            raise PathEscapeError(path, self.base)
        with suppress(FileNotFoundError):
            self._filesystem.delete_dir(self._full(path))

    def rename(self, source: str, target: str) -> None:
        status = self.stat(source)
        if status is None:
            raise FileNotFoundError(errno.ENOENT, "no such file or folder", f"{self.base}/{source}")
        if self.stat(target) is not None:
            raise FileExistsError(
                errno.EEXIST, "the target of a rename exists already", f"{self.base}/{target}"
            )
        if not status.is_dir or self._filesystem.type_name not in _FLAT:
            self._make_parent(target)
            self._filesystem.move(self._full(source), self._full(target))
            return
        # Object stores have no folders to rename: copy all of it first, so that an interruption loses
        # nothing.
        below = [
            file.path[len(source) + 1 :] for file in self.list(source, recursive=True) if not file.is_dir
        ]
        for name in below:
            self.copy(f"{source}/{name}", f"{target}/{name}")
        self.delete_tree(source)

    def copy(self, source: str, target: str) -> None:
        self._make_parent(target)
        self._filesystem.copy_file(self._full(source), self._full(target))

    def make_dirs(self, path: str) -> None:
        self._filesystem.create_dir(self._full(path), recursive=True)

    def open_input(self, path: str) -> pa.NativeFile:
        return self._filesystem.open_input_file(self._full(path))

    def open_output(
        self, path: str, *, before_publish: Callable[[], None] | None = None
    ) -> AbstractContextManager[BinaryIO]:
        self.checked(path)
        return self._output(path, before_publish)

    def uri(self, path: str = "") -> str:
        return f"{self._spark_base}/{self.checked(path)}" if path else self._spark_base

    @contextmanager
    def _output(self, path: str, before_publish: Callable[[], None] | None) -> Iterator[BinaryIO]:
        # Closing an upload publishes it, even after an error, so the content is complete before it starts.
        with tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES) as spool:
            yield cast(BinaryIO, spool)
            if before_publish is not None:
                before_publish()
            if self.stat(path) is not None:
                raise FileExistsError(errno.EEXIST, "the file exists already", f"{self.base}/{path}")
            spool.seek(0)
            self._upload(path, cast("IO[bytes]", spool))

    def _upload(self, path: str, source: IO[bytes]) -> None:
        self._make_parent(path)
        try:
            with self._filesystem.open_output_stream(self._full(path), compression=None) as sink:
                while chunk := source.read(_COPY_BYTES):
                    sink.write(chunk)
        except BaseException:
            with suppress(OSError):
                self._remove(path)
            raise

    def _put(self, path: str, data: bytes) -> None:
        self._make_parent(path)
        with self._filesystem.open_output_stream(self._full(path), compression=None) as sink:
            sink.write(data)

    def _make_parent(self, path: str) -> None:
        """Make the folder where the file system has real ones; object stores would only get marker keys."""
        if self._filesystem.type_name not in _FLAT:
            self._filesystem.create_dir(self._full(path).rpartition("/")[0], recursive=True)

    def _full(self, path: str) -> str:
        return f"{self._root}/{self.checked(path)}" if path else self._root

    def _remove(self, path: str) -> bool:
        info = self._filesystem.get_file_info(self._full(path))
        if info.type != fs.FileType.File:
            return False
        with suppress(FileNotFoundError):
            self._filesystem.delete_file(info.path)
        return True


def open_arrow_storage(base: str) -> ArrowStorage:
    """Open a URI with pyarrow's client for its scheme.

    Args:
        base: ``s3://``, ``s3a://``, ``gs://``, ``abfs://``, ``abfss://`` or ``hdfs://`` URI of a table. One without
            credentials and query part takes those that a URI of the same bucket was opened with before in this
            process, of the nearest place if there are several.

    Raises:
        StorageError: when pyarrow has no client for the scheme or cannot set it up.
    """
    location, question, settings = base.partition("?")
    scheme, _, rest = location.rstrip("/").partition("://")
    is_s3 = scheme in ("s3", "s3a", "s3n")
    authority, _, path = rest.partition("/")
    public = f"{_SECRET.sub('', authority)}/{path}".rstrip("/")
    place = ("s3" if is_s3 else scheme, public.partition("/")[0])
    told = bool(question) or _SECRET.match(authority) is not None
    if not told and place in _GIVEN:
        authority, question, settings = _given_nearby(_GIVEN[place], public)
    try:
        # Only the authority is given as a URI: pyarrow would decode percent signs in a path, which is
        # literal here.
        filesystem, root = fs.FileSystem.from_uri(
            f"{'s3' if is_s3 else scheme}://{authority}{question}{settings}"
        )
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).replace(authority, _SECRET.sub("", authority)) if authority else str(error)
        raise StorageError(
            f"cannot open the storage of '{scheme}://{public}': {reason}. Legal are a local path and file:, "
            "s3://, s3a://, gs://, abfs://, abfss:// and hdfs:// URIs; credentials and endpoints come from "
            "the environment or, for s3, from the query part of the URI"
        ) from error
    if told:
        known = _GIVEN.setdefault(place, {})
        known.pop(public, None)
        known[public] = (authority, question, settings)
    full = f"{root.rstrip('/')}/{path}".rstrip("/")
    return ArrowStorage(f"{scheme}://{public}", filesystem, full, f"{'s3a' if is_s3 else scheme}://{public}")


def _given_nearby(given: Mapping[str, _Access], public: str) -> _Access:
    """Return the settings that were given for the nearest place of a bucket, the newest of equally near ones."""
    parts = public.split("/")

    def shared(other: str) -> int:
        pairs = zip(parts, other.split("/"), strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    return given[max(reversed(list(given)), key=shared)]


def _status(info: fs.FileInfo, path: str) -> FileStatus:
    is_dir = info.type == fs.FileType.Directory
    modified_ms = 0 if info.mtime_ns is None else info.mtime_ns // 1_000_000
    return FileStatus(path, 0 if is_dir else info.size, modified_ms, is_dir)


def _skipped(below: str, is_dir: bool, skip: frozenset[str]) -> bool:
    folders = below.split("/") if is_dir else below.split("/")[:-1]
    return any(folder in skip for folder in folders)

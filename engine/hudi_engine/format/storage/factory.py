"""From a table's base path to the storage that holds it."""

from __future__ import annotations

import errno
import io
import re
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import IO

import pyarrow as pa
from pyarrow import fs

from hudi_engine.errors import ConfigError, PathEscapeError, StorageError
from hudi_engine.format.storage import paths
from hudi_engine.format.storage.base import (
    TEMP_PREFIX,
    FileStatus,
    Listing,
    SpooledStorage,
    Storage,
    crc_path,
)
from hudi_engine.format.storage.given import remember, settings_for, with_access
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.storage.object_client import ObjectClient
from hudi_engine.format.storage.planned import as_planned
from hudi_engine.format.storage.redact import redacted
from hudi_engine.format.storage.uris import RemoteUri

_COPY_BYTES = 8 * 1024 * 1024
_BACKUP = ".backup"


class ArrowStorage(SpooledStorage):
    """A folder of a pyarrow file system, such as HDFS; a file is written under a temporary name and renamed.

    None of them creates a file only if it is absent, so ``exclusive_create`` is False: one writer at a time is safe.
    """

    def __init__(self, base: str, filesystem: fs.FileSystem, root: str) -> None:
        self.base = base
        self._filesystem = filesystem
        self._root = root.rstrip("/")

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
        self._refuse_existing(path)
        self._put(path, io.BytesIO(data), self._give_free_name)

    def replace(self, path: str, data: bytes) -> None:
        self._put(path, io.BytesIO(data), self._give_name)

    def refresh(self, path: str, data: bytes) -> None:
        # In place, as no one may find it missing meanwhile; cut short it still has an age.
        with self._filesystem.open_output_stream(self._full(path), compression=None) as sink:
            sink.write(data)

    def delete(self, path: str) -> bool:
        self._remove(crc_path(path))
        return self._remove(path)

    def delete_tree(self, path: str) -> None:
        if path == "":
            raise PathEscapeError(path, self.base)
        with suppress(FileNotFoundError):
            self._filesystem.delete_dir(self._full(path))

    def rename(self, source: str, target: str) -> None:
        if self.stat(source) is None:
            raise FileNotFoundError(errno.ENOENT, "no such file or folder", f"{self.base}/{source}")
        if self.stat(target) is not None:
            raise FileExistsError(
                errno.EEXIST, "the target of a rename exists already", f"{self.base}/{target}"
            )
        self._make_parent(target)
        self._filesystem.move(self._full(source), self._full(target))

    def copy(self, source: str, target: str) -> None:
        # pyarrow copies no file within HDFS
        with self.open_input(source) as file:
            self._put(target, file, self._give_name)

    def make_dirs(self, path: str) -> None:
        self._filesystem.create_dir(self._full(path), recursive=True)

    def open_input(self, path: str) -> pa.NativeFile:
        return self._filesystem.open_input_file(self._full(path))

    def uri(self, path: str = "") -> str:
        return f"{self.base}/{self.checked(path)}" if path else self.base

    def _upload(self, path: str, source: IO[bytes], before_publish: Callable[[], None]) -> None:
        def publish(temporary: str, path: str) -> None:
            before_publish()
            self._give_free_name(temporary, path)

        self._put(path, source, publish)

    def _put(self, path: str, source: IO[bytes] | pa.NativeFile, publish: Callable[[str, str], None]) -> None:
        """Write a file under a temporary name next to its own, and have ``publish`` rename it."""
        self._make_parent(path)
        temporary = paths.join(paths.parent(path), f"{TEMP_PREFIX}{uuid.uuid4().hex}")
        try:
            with self._filesystem.open_output_stream(self._full(temporary), compression=None) as sink:
                while chunk := source.read(_COPY_BYTES):
                    sink.write(chunk)
            publish(temporary, path)
        except BaseException:
            with suppress(OSError):
                self._remove(temporary)
            raise

    def _give_free_name(self, temporary: str, path: str) -> None:
        self._refuse_existing(path)
        try:
            self._filesystem.move(self._full(temporary), self._full(path))
        except OSError:
            self._refuse_existing(path)
            raise

    def _give_name(self, temporary: str, path: str) -> None:
        """Give a finished file its name, whoever has it.

        HDFS renames onto no file. There the one before is called what Hudi calls the properties of a table while it changes
        them, so that a change that is cut off loses neither.
        """
        self._remove(crc_path(path))
        full, backup = self._full(path), self._full(path + _BACKUP)
        try:
            self._filesystem.move(self._full(temporary), full)
            return
        except OSError:
            if self.stat(path) is None:
                raise
        self._remove(path + _BACKUP)
        self._filesystem.move(full, backup)
        try:
            self._filesystem.move(self._full(temporary), full)
        except OSError:
            self._filesystem.move(backup, full)
            raise
        self._remove(path + _BACKUP)

    def _make_parent(self, path: str) -> None:
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


def open_arrow_storage(uri: RemoteUri) -> ArrowStorage:
    """Open a place with pyarrow's client for its scheme."""
    known = with_access(uri)
    try:
        # Only the authority is given as a URI: pyarrow would decode percent signs in a path, which is
        # literal here.
        filesystem, root = fs.FileSystem.from_uri(f"{uri.scheme}://{known.raw_authority}{known.query}")
    except (pa.ArrowException, OSError, ValueError) as error:
        secrets = [each for each in (known.raw_authority, *known.login.values()) if each != uri.authority]
        raise StorageError(
            f"cannot open the storage of {uri.public!r}: {redacted(str(error), secrets)}. Legal are a local path and file:, "
            "s3://, s3a://, gs://, abfs://, abfss:// and hdfs:// URIs"
        ) from None
    if uri.has_access:
        remember(uri)
    return ArrowStorage(uri.public, filesystem, paths.join(root.rstrip("/"), uri.path))


def _status(info: fs.FileInfo, path: str) -> FileStatus:
    is_dir = info.type == fs.FileType.Directory
    modified_ms = 0 if info.mtime_ns is None else info.mtime_ns // 1_000_000
    return FileStatus(path, 0 if is_dir else info.size, modified_ms, is_dir)


def _skipped(below: str, is_dir: bool, skip: frozenset[str]) -> bool:
    folders = below.split("/") if is_dir else below.split("/")[:-1]
    return any(folder in skip for folder in folders)


_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):")


def open_storage(base: str) -> Storage:
    """Open the storage of a table.

    Args:
        base: Local path (a relative one counts from the working directory), ``file:`` URI, or URI of a remote
            store. It is taken literally: percent signs are not decoded.
    """
    if not isinstance(base, str) or not base.strip():
        raise ConfigError(
            f"the base path of a table is {base!r}; give a local path or a URI such as s3a://bucket/table"
        )
    scheme = _SCHEME.match(base)
    if scheme is None:
        return as_planned(LocalStorage(base))
    if scheme.group(1).lower() == "file":
        return as_planned(LocalStorage(_file_path(base)))
    return as_planned(_open_remote(RemoteUri.parse(base)))


def _open_remote(uri: RemoteUri) -> Storage:
    if uri.kind is None:
        return open_arrow_storage(uri)
    try:
        # Needed by no table on a disk, so it is no dependency.
        from hudi_engine.format.storage.objects import ObjectStorage
    except ImportError as error:
        raise StorageError(
            f"{uri.public!r} is in an object store, which needs the package obstore: pip install "
            f"'dbt-hudi[{uri.kind.value}]'"
        ) from error
    source = with_access(uri)
    client = ObjectClient.of(replace(uri, login=source.login), {**settings_for(uri), **source.settings})
    if uri.has_access:
        remember(uri)
    return ObjectStorage(uri.public, client, uri.path, uri.spark)


def _file_path(uri: str) -> str:
    """Return the path of ``file:/x``, ``file:///x`` or ``file://localhost/x``."""
    path = uri.split(":", 1)[1]
    if path.startswith("//"):
        host, slash, rest = path[2:].partition("/")
        if host not in ("", "localhost"):
            raise ConfigError(
                f"the file: URI {uri!r} names the host {host!r}; a local path is written file:/… or file:///…"
            )
        path = slash + rest
    return path

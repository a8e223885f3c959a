"""From a table's base path to the storage that holds it."""

from __future__ import annotations

import re
from dataclasses import replace

from hudi_engine.errors import ConfigError, StorageError
from hudi_engine.format.storage.arrow import open_arrow_storage
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.given import remember, settings_for, telling
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.storage.object_client import ObjectClient
from hudi_engine.format.storage.uris import RemoteUri

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
        return LocalStorage(base)
    if scheme.group(1).lower() == "file":
        return LocalStorage(_file_path(base))
    return _open_remote(RemoteUri.parse(base))


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
    source = telling(uri)
    client = ObjectClient.of(replace(uri, login=source.login), {**settings_for(uri), **source.settings})
    if uri.told:
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

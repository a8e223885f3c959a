"""From a table's base path to the storage that holds it."""

from __future__ import annotations

import re

from hudi_engine.errors import ConfigError
from hudi_engine.storage.arrow import open_arrow_storage
from hudi_engine.storage.base import Storage
from hudi_engine.storage.local import LocalStorage

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):")


def open_storage(base: str) -> Storage:
    """Open the storage of a table.

    Args:
        base: Local path (a relative one counts from the working directory), ``file:`` URI, or URI of a remote
            store. It is taken literally: percent signs are not decoded.

    Raises:
        ConfigError: when ``base`` is empty or no text.
        StorageError: when the scheme is unknown or its client cannot be set up.
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
    return open_arrow_storage(base)


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

"""Writing objects: conditional writes whose outcome is known even when the answer was lost, and large uploads."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import IO, TYPE_CHECKING

import obstore

from hudi_engine.format.storage.object_client import ChangedMeanwhileError, ObjectClient

if TYPE_CHECKING:
    from obstore import UpdateVersion

SMALL_BYTES = 16 * 1024 * 1024
"""Up to this size a file is one request, and its creation conditional."""
_PART_BYTES = 8 * 1024 * 1024
_MOST_PARTS = 9_000
"""Stores take ten thousand parts."""
_ATTEMPTS = 4
_FIRST_PAUSE_S = 0.1
_TOKEN = "hudiput"  # noqa: S105 - the name of an attribute
"""Metadata of an object that tells which create has made it."""


def create_object(client: ObjectClient, path: str, data: bytes) -> None:
    """Create an object if it is absent, and find out whether it was this call that did.

    A request that failed may have been carried out, and the client repeats requests by itself: then "exists already"
    would be said of our own object. So each create carries a token, and after anything but a plain success it is asked
    for, or the create tried again; a request that is late does no harm, since it is conditional too.
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
            # A missing object: the service was busy with a delete of it (409), and says so with the same words.
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
    """Upload a large file in parts; the object appears with the last step.

    Args:
        before_publish: Called when all parts but the last are there; an error it raises aborts the upload.
    """
    part = max(_PART_BYTES, size // _MOST_PARTS)
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

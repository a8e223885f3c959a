"""Whether a store's service really creates a file only if it is absent.

S3 and Azure do, and say so. Others that speak their protocols may take the condition and not obey it: they are asked once,
with an object of no meaning. So is Google's, whose protocol is run against no server in the tests.
"""

from __future__ import annotations

import logging
import uuid
from contextlib import suppress

from hudi_engine.format.storage.base import TEMP_PREFIX
from hudi_engine.format.storage.object_client import ObjectClient
from hudi_engine.format.storage.uris import StoreKind

logger = logging.getLogger(__name__)

_KNOWN: dict[tuple[str, str], bool] = {}
"""By address of a service and bucket, what it answered this process."""


def creates_exclusively(client: ObjectClient, root: str) -> bool:
    """Return whether a conditional create has one winner in a bucket."""
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

"""A server of Azure's object store on the loopback interface: Azurite."""

from __future__ import annotations

import base64
import email.utils
import hashlib
import hmac
import itertools
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.helpers.loopback import free_port, wait_for
from tools.azurite import ensure_azurite
from tools.console import SetupError

ACCOUNT = "devstoreaccount1"
# Azurite's account is in its documentation.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_VERSION = "2021-08-06"
_START_S = 120


class AzureServer:
    """A running server.

    Args:
        endpoint: URL of its account.
    """

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._numbers = itertools.count()

    def new_bucket(self) -> str:
        """Make a container; returns its URI. Clients find the server by the environment."""
        name = f"container-{os.getpid()}-{next(self._numbers)}"
        date = email.utils.formatdate(usegmt=True)
        signed = (
            "PUT"
            + "\n" * 12
            + f"x-ms-date:{date}\nx-ms-version:{_VERSION}\n/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
        )
        digest = hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()
        headers = {
            "x-ms-date": date,
            "x-ms-version": _VERSION,
            "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}",
            "Content-Length": "0",
        }
        url = f"{self.endpoint}/{name}?restype=container"
        urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers), timeout=30).close()
        return f"az://{name}"


@contextmanager
def running_azure_server() -> Iterator[AzureServer]:
    """Run a server on a free port, and let the clients of this process and its children find it."""
    try:
        program = ensure_azurite()
    except SetupError as reason:
        pytest.skip(f"LEFT OUT: Azure: {reason}")
    port = free_port()
    address = ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    process = subprocess.Popen(
        ["node", str(program), *address, "--inMemoryPersistence", "--silent", "--skipApiVersionCheck"],
        stdout=subprocess.DEVNULL,
    )
    endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
    settings = {
        "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": KEY,
        "AZURE_STORAGE_ENDPOINT": endpoint,
    }
    try:
        wait_for(process, port, "Azurite", _START_S)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in settings.items():
                patch.setenv(name, value)
            yield AzureServer(endpoint)
    finally:
        process.terminate()
        process.wait()

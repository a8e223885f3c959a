"""An S3 server on the loopback interface, so that object stores are tested by their real protocol."""

from __future__ import annotations

import itertools
import logging
import os
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID
from moto.server import ThreadedMotoServer

_SETTINGS = {
    "AWS_ACCESS_KEY_ID": "tester",
    "AWS_SECRET_ACCESS_KEY": "not-a-secret",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_REGION": "us-east-1",
}
_NUMBERS = itertools.count()
"""No two servers of a process have a bucket of the same name."""
_CHANGING = ("PUT", "POST", "DELETE")
_App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


@dataclass
class Trouble:
    """What goes wrong with some requests.

    Args:
        method: Method of the requests, such as ``PUT``.
        path: Pattern that is searched in their paths.
        how: ``refused`` (503 and nothing is done), ``unanswered`` (done, and 503 is said) or ``dropped`` (done, and the
            connection breaks).
        times: How many requests it meets.
    """

    method: str
    path: str
    how: str
    times: int = 1


@dataclass
class Wire:
    """Stands in front of the server: counts requests, and troubles them.

    The server looks at a condition and stores in two steps, which the real one does in one: changes wait for each other.

    Attributes:
        requests: Method and path, with its query, of every request.
        ranges: The part of the object that every request asks for, "" for all of it.
        troubles: What goes wrong.
        unconditional: Buckets whose requests lose their conditions, as with servers that do not know them.
    """

    app: _App
    requests: list[str] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    unconditional: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        with self.lock:
            self.requests.append(f"{method} {path}?{environ.get('QUERY_STRING', '')}")
            self.ranges.append(environ.get("HTTP_RANGE", ""))
            trouble = self._trouble(method, path)
            if path.split("/")[1] in self.unconditional:
                environ.pop("HTTP_IF_NONE_MATCH", None)
                environ.pop("HTTP_IF_MATCH", None)
            if trouble is None and method in _CHANGING:
                return list(self.app(environ, start_response))
            if trouble is not None and trouble.how != "refused":
                list(self.app(environ, lambda *_, **__: lambda _: None))
        if trouble is None:
            return self.app(environ, start_response)
        if trouble.how == "dropped":
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        start_response("503 Slow Down", [("Content-Length", "0")])
        return []

    def _trouble(self, method: str, path: str) -> Trouble | None:
        for each in self.troubles:
            if each.times and each.method == method and re.search(each.path, path):
                each.times -= 1
                return each
        return None


class S3Server:
    """A running server.

    Args:
        endpoint: Its URL.
        wire: What stands in front of it.
    """

    def __init__(self, endpoint: str, wire: Wire) -> None:
        self.endpoint = endpoint
        self.wire = wire

    def new_bucket(self) -> str:
        """Make a bucket; returns its URI. Clients find the server by the environment."""
        name = f"bucket-{os.getpid()}-{next(_NUMBERS)}"
        self.client.create_bucket(Bucket=name)
        return f"s3://{name}"

    @property
    def client(self) -> Any:
        """A client that is not the engine's."""
        return boto3.client("s3", endpoint_url=self.endpoint, region_name="us-east-1")

    def put(self, bucket: str, key: str) -> None:
        """Put an object, or a folder's mark, into a bucket, past the protocol, which is slow for thousands of them."""
        get_backend("s3")[DEFAULT_ACCOUNT_ID]["aws"].put_object(
            bucket, key, b"" if key.endswith("/") else b"1"
        )

    @contextmanager
    def trouble(self, *troubles: Trouble) -> Iterator[Wire]:
        """Let something go wrong for a while."""
        self.wire.troubles[:] = troubles
        try:
            yield self.wire
        finally:
            self.wire.troubles.clear()

    @contextmanager
    def counted(self) -> Iterator[list[str]]:
        """Count the requests of a block."""
        self.wire.requests.clear()
        self.wire.ranges.clear()
        yield self.wire.requests


@contextmanager
def running_s3_server() -> Iterator[S3Server]:
    """Run a server on a free port, and let the AWS clients of this process and its children find it."""
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    wire = Wire(server._server.app)
    server._server.app = wire
    host, port = server.get_host_and_port()
    settings = {**_SETTINGS, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield S3Server(settings["AWS_ENDPOINT_URL"], wire)
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        server.stop()

"""A server of Google's object store on the loopback interface: fake-gcs-server, with the part of the XML protocol that it lacks.

Clients write by Google's XML protocol, and the server takes writes by the JSON one alone. What stands in front of it says
the same in the other words; what is stored, its generations, and whether a condition holds, is the server's.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import re
import subprocess
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pytest

from tests.helpers.loopback import free_port, wait_for
from tools.console import SetupError
from tools.fake_gcs import ensure_fake_gcs

_START_S = 60
_META = "x-goog-meta-"
_NOT_PASSED = ("transfer-encoding", "connection", "content-length", "host", "date", "server")
_Answer = tuple[int, Mapping[str, str], bytes]


class GcsServer:
    """A running server.

    Args:
        endpoint: Its URL.
    """

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._numbers = itertools.count()

    def new_bucket(self) -> str:
        """Make a bucket; returns its URI. Clients find the server by the environment."""
        name = f"bucket-{os.getpid()}-{next(self._numbers)}"
        place = urlsplit(self.endpoint)
        status, _, said = _ask(place.port, "POST", "/storage/v1/b", json.dumps({"name": name}).encode())
        assert status == 200, said
        return f"gs://{name}"


def _ask(
    port: int | None, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> _Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


class _Front(ThreadingHTTPServer):
    """Says XML requests in JSON to the server behind it.

    Args:
        port: Port of that server.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = port
        self.parts: dict[str, dict[int, bytes]] = {}
        self.lock = threading.Lock()

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> _Answer:
        """Answer one request."""
        asked = urlsplit(target)
        query = parse_qs(asked.query, keep_blank_values=True)
        found = re.fullmatch(r"/([^/]+)/(.+)", asked.path)
        if found is None or asked.path.startswith(("/storage/v1", "/upload/")):
            return _ask(self.behind, method, target, body, headers)
        bucket, name = found[1], unquote(found[2])
        if "uploads" in query:
            return self._begin_parts()
        if "uploadId" in query:
            return self._of_parts(method, bucket, name, query, headers, body)
        if method != "PUT":
            return _ask(self.behind, method, target, body, headers)
        if "x-goog-copy-source" in headers:
            return self._copy(bucket, name, headers)
        return self._put(bucket, name, headers, body)

    def _put(self, bucket: str, name: str, headers: Mapping[str, str], body: bytes) -> _Answer:
        notes = {key[len(_META) :]: value for key, value in headers.items() if key.startswith(_META)}
        about = json.dumps({"name": name, "metadata": notes}).encode()
        mark = uuid.uuid4().hex.encode()
        wrapped = b"".join(
            b"--%s\r\nContent-Type: %s\r\n\r\n%s\r\n" % (mark, kind, part)
            for kind, part in ((b"application/json", about), (b"application/octet-stream", body))
        )
        said = _ask(
            self.behind,
            "POST",
            f"/upload/storage/v1/b/{bucket}/o?uploadType=multipart{_condition(headers)}",
            wrapped + b"--%s--\r\n" % mark,
            {"Content-Type": f"multipart/related; boundary={mark.decode()}"},
        )
        return _as_xml(said)

    def _copy(self, bucket: str, name: str, headers: Mapping[str, str]) -> _Answer:
        source, _, old = unquote(headers["x-goog-copy-source"]).lstrip("/").partition("/")
        path = f"/storage/v1/b/{source}/o/{quote(old, safe='')}/copyTo/b/{bucket}/o/{quote(name, safe='')}"
        condition = _condition(headers)
        return _as_xml(_ask(self.behind, "POST", path + (f"?{condition[1:]}" if condition else ""), b"{}"))

    def _begin_parts(self) -> _Answer:
        key = uuid.uuid4().hex
        with self.lock:
            self.parts[key] = {}
        said = f"<InitiateMultipartUploadResult><Bucket/><Key/><UploadId>{key}</UploadId></InitiateMultipartUploadResult>"
        return 200, {"Content-Type": "application/xml"}, said.encode()

    def _of_parts(
        self,
        method: str,
        bucket: str,
        name: str,
        query: Mapping[str, list[str]],
        headers: Mapping[str, str],
        body: bytes,
    ) -> _Answer:
        key = query["uploadId"][0]
        with self.lock:
            if key not in self.parts:
                return 404, {}, b"<Error><Code>NoSuchUpload</Code></Error>"
            if method == "PUT":
                number = int(query["partNumber"][0])
                self.parts[key][number] = body
                return 200, {"ETag": f'"{number}"'}, b""
            parts = self.parts.pop(key)
        if method == "DELETE":
            return 204, {}, b""
        status, told, said = self._put(bucket, name, headers, b"".join(parts[each] for each in sorted(parts)))
        if status != 200:
            return status, told, said
        etag = told["ETag"]
        done = f"<CompleteMultipartUploadResult><ETag>{etag}</ETag></CompleteMultipartUploadResult>"
        return 200, told, done.encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Front

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {
            key.lower(): value for key, value in self.headers.items() if key.lower() not in _NOT_PASSED
        }
        status, told, said = self.server.answer(self.command, self.path, headers, body)
        length = next((value for key, value in told.items() if key.lower() == "content-length"), "0")
        self.send_response(status)
        for key, value in told.items():
            if key.lower() not in _NOT_PASSED:
                self.send_header(key, value)
        self.send_header("Content-Length", length if self.command == "HEAD" else str(len(said)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(said)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass  # noqa: N815 - names of the base class

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ARG002
        """Say nothing."""


def _condition(headers: Mapping[str, str]) -> str:
    """Return the condition of a request as JSON's protocol has it, with ``&`` before it."""
    wanted = headers.get("x-goog-if-generation-match")
    return "" if wanted is None else f"&ifGenerationMatch={wanted}"


def _as_xml(answer: _Answer) -> _Answer:
    """Return what the XML protocol says of an object that was written."""
    status, _, said = answer
    if status != 200:
        return status, {"Content-Type": "application/json"}, said
    made = json.loads(said)
    made = made.get("resource", made)
    told = {"ETag": f'"{made["etag"]}"', "x-goog-generation": str(made["generation"])}
    return 200, told, b""


@contextmanager
def running_gcs_server() -> Iterator[GcsServer]:
    """Run a server on a free port, and let the clients of this process and its children find it."""
    try:
        program = ensure_fake_gcs()
    except SetupError as reason:
        pytest.skip(f"LEFT OUT: Google Cloud Storage: {reason}")
    port = free_port()
    process = subprocess.Popen(
        [
            *(str(program), "-scheme", "http", "-backend", "memory", "-log-level", "error"),
            *("-host", "127.0.0.1", "-port", str(port), "-public-host", f"127.0.0.1:{port}"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(process, port, "fake-gcs-server", _START_S)
        front = _Front(port)
        threading.Thread(target=front.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{front.server_port}"
        account = {"gcs_base_url": endpoint, "disable_oauth": True}
        unsigned = {**account, "client_email": "", "private_key": "", "private_key_id": ""}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GOOGLE_BASE_URL", endpoint)
            patch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", json.dumps(unsigned))
            yield GcsServer(endpoint)
        front.shutdown()
        front.server_close()
    finally:
        process.terminate()
        process.wait()

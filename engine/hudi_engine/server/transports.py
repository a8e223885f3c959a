"""The ways in which clients connect, told apart by the first byte: plain Thrift, Thrift in SASL PLAIN, Thrift over HTTP.

With TLS all of them are inside of it.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import logging
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from http.client import HTTPException, parse_headers
from io import BufferedReader, BytesIO
from typing import BinaryIO

from hudi_engine.server.binary import ProtocolError, Reader
from hudi_engine.server.calls import Connection
from hudi_engine.server.sessions import Sessions

log = logging.getLogger(__name__)

LogIn = Callable[[str, str], bool]
_LOGIN_S = 30.0
_MORE_THAN_A_STATEMENT = 1024 * 1024
_CONNECTIONS_OF_A_SESSION = 2
# SASL's states in Thrift.
_START, _GOOD, _BAD, _FAILED, _COMPLETE = 1, 2, 3, 4, 5
_HEAD = struct.Struct("!BI")
_FRAME = struct.Struct("!I")
_MAX_LOGIN_BYTES = 4096
_THRIFT = "application/x-thrift"
_MAX_LINE = 65536


class Listener:
    """Takes connections, each in a thread.

    Args:
        log_in: Checks a user and password; None lets everyone in.
        tls: Makes each connection one of TLS; None for plain ones.
    """

    def __init__(
        self, address: tuple[str, int], sessions: Sessions, log_in: LogIn | None, tls: ssl.SSLContext | None
    ) -> None:
        self._sessions, self._log_in, self._tls = sessions, log_in, tls
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._socket = socket.create_server(address, family=family, backlog=128)
        self.port = int(self._socket.getsockname()[1])
        self._open: set[socket.socket] = set()
        self._room = threading.Semaphore(sessions.limits.sessions * _CONNECTIONS_OF_A_SESSION)
        self._max_message = sessions.limits.statement_bytes + _MORE_THAN_A_STATEMENT

    def serve(self) -> None:
        """Take connections until the listener is closed."""
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            if not self._room.acquire(blocking=False):
                log.warning("a connection is rejected: there are as many as --max-sessions allows")
                client.close()
                continue
            threading.Thread(target=self._serve_one, args=(client,), name="client", daemon=True).start()

    def close(self) -> None:
        """Take no connections any more."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def hang_up(self) -> None:
        """End the connections that are left."""
        for each in list(self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _serve_one(self, client: socket.socket) -> None:
        self._open.add(client)
        try:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.settimeout(_LOGIN_S)
            spoken = client if self._tls is None else self._tls.wrap_socket(client, server_side=True)
            with spoken, spoken.makefile("rb") as received, spoken.makefile("wb") as sent:
                self._speak(spoken, received, sent)
        except (OSError, EOFError, ProtocolError, HTTPException, ValueError) as error:
            log.debug("a connection ended: %s", error)
        except Exception:
            log.warning("a connection ended by an error of the server", exc_info=True)
        finally:
            self._open.discard(client)
            client.close()
            self._room.release()

    def _speak(self, spoken: socket.socket, received: BufferedReader, sent: BinaryIO) -> None:
        first = received.peek(1)[:1]
        if first == bytes([_START]):
            user = _sasl_log_in(received, sent, self._log_in)
            spoken.settimeout(None)
            self._binary(_Frames(received, sent, self._max_message), user if self._log_in else None)
        elif first in (b"P", b"G", b"H", b"O"):
            self._http(spoken, received, sent)
        elif self._log_in is not None:
            raise ProtocolError("a client without user and password: it has to use SASL PLAIN, or HTTP")
        else:
            spoken.settimeout(None)
            self._binary(_Plain(received, sent), None)

    def _binary(self, stream: _Plain | _Frames, user: str | None) -> None:
        connection = Connection(self._sessions, user)
        try:
            while True:
                call = Reader(stream.read, self._max_message).message()
                stream.write(connection.answer(call))
        finally:
            connection.close()

    def _http(self, spoken: socket.socket, received: BufferedReader, sent: BinaryIO) -> None:
        """Answer requests of one connection; its sessions go on when it ends, as clients may take another one."""
        while True:
            spoken.settimeout(max(_LOGIN_S, self._sessions.limits.idle_s))
            line = received.readline(_MAX_LINE)
            if not line.strip():
                return
            spoken.settimeout(_LOGIN_S)
            status, body, goes_on = self._http_answer(line, received)
            spoken.settimeout(None)
            more = 'WWW-Authenticate: Basic realm="dbt-hudi"\r\n' if status.startswith("401") else ""
            kind = _THRIFT if status.startswith("200") else "text/plain"
            head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}"
            sent.write(f"{head}Connection: {'keep-alive' if goes_on else 'close'}\r\n\r\n".encode() + body)
            sent.flush()
            if not goes_on:
                return

    def _http_answer(self, line: bytes, received: BufferedReader) -> tuple[str, bytes, bool]:
        """Return status and body of an answer, and whether the connection may be used again."""
        headers = {key.lower(): value for key, value in parse_headers(received).items()}
        refused = _refused_request(line, headers, self._max_message)
        if refused is not None:
            return refused, b"Thrift over HTTP: POST to /cliservice\n", False
        body = _exactly(received, int(headers["content-length"]))
        user, password = _basic(headers.get("authorization", ""))
        if self._log_in is not None and not self._log_in(user, password):
            return "401 Unauthorized", b"user and password are asked for (HTTP Basic)\n", False
        call = Reader(_reading(BytesIO(body)), self._max_message).message()
        answer = Connection(self._sessions, user if self._log_in else None).answer(call)
        return "200 OK", answer, headers.get("connection", "").lower() != "close"


def _refused_request(line: bytes, headers: Mapping[str, str], limit: int) -> str | None:
    """Return the status of a request that is not answered; None for a call.

    A page in a browser must not run statements on the reader's machine: browsers send Origin or Sec-Fetch-Site, and ask before they
    send a body of another type than forms have.
    """
    words = line.split()
    if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
        return "400 Bad Request"
    if words[0] != b"POST":
        return "405 Method Not Allowed"
    if "origin" in headers or "sec-fetch-site" in headers:
        return "403 Forbidden"
    if headers.get("content-type", "").partition(";")[0].strip().lower() != _THRIFT:
        return "415 Unsupported Media Type"
    length = headers.get("content-length", "")
    if not length.isdecimal() or "transfer-encoding" in headers:
        return "411 Length Required"
    return "413 Content Too Large" if int(length) > limit else None


def _basic(header: str) -> tuple[str, str]:
    """Return user and password of HTTP Basic; empty ones where there are none."""
    kind, _, coded = header.partition(" ")
    try:
        decoded = base64.b64decode(coded.strip(), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        decoded = ""
    user, _, password = decoded.partition(":") if kind.lower() == "basic" else ("", "", "")
    return user, password


def _sasl_log_in(received: BinaryIO, sent: BinaryIO, log_in: LogIn | None) -> str:
    """Take user and password by SASL's mechanism PLAIN; ProtocolError for a user who is not let in."""
    mechanism, credentials = _sasl_message(received)[1], b""
    if mechanism != b"PLAIN":
        _sasl_send(sent, _BAD, b"the mechanism is PLAIN, with user and password")
        raise ProtocolError(f"SASL by {mechanism[:20]!r}")
    status, credentials = _sasl_message(received)
    parts = credentials.split(b"\0")
    if status not in (_GOOD, _COMPLETE) or len(parts) != 3:
        _sasl_send(sent, _BAD, b"user and password are missing")
        raise ProtocolError("SASL PLAIN without user and password")
    user, password = (part.decode("utf-8", "replace") for part in parts[1:])
    if log_in is not None and not log_in(user, password):
        log.warning("a client was not let in: user %r or the password is wrong", user[:64])
        _sasl_send(sent, _FAILED, b"user or password is wrong")
        raise ProtocolError("not let in")
    _sasl_send(sent, _COMPLETE, b"")
    return user


def _sasl_message(received: BinaryIO) -> tuple[int, bytes]:
    status, length = _HEAD.unpack(_exactly(received, _HEAD.size))
    if length > _MAX_LOGIN_BYTES:
        raise ProtocolError(f"{length} bytes to log in")
    return status, _exactly(received, length)


def _sasl_send(sent: BinaryIO, status: int, payload: bytes) -> None:
    sent.write(_HEAD.pack(status, len(payload)) + payload)
    sent.flush()


class _Plain:
    """Messages one behind the other."""

    def __init__(self, received: BinaryIO, sent: BinaryIO) -> None:
        self.read = _reading(received)
        self._sent = sent

    def write(self, message: bytes) -> None:
        self._sent.write(message)
        self._sent.flush()


class _Frames:
    """Messages in frames, each after its length, as behind SASL."""

    def __init__(self, received: BinaryIO, sent: BinaryIO, limit: int) -> None:
        self._received, self._sent, self._limit = received, sent, limit
        self._frame = BytesIO()

    def read(self, count: int) -> bytes:
        found = self._frame.read(count)
        while len(found) < count:
            (length,) = _FRAME.unpack(_exactly(self._received, _FRAME.size))
            if length > self._limit:
                raise ProtocolError(f"a frame of {length} bytes; at most {self._limit} are allowed")
            self._frame = BytesIO(_exactly(self._received, length))
            found += self._frame.read(count - len(found))
        return found

    def write(self, message: bytes) -> None:
        self._sent.write(_FRAME.pack(len(message)) + message)
        self._sent.flush()


def _reading(source: BinaryIO) -> Callable[[int], bytes]:
    return lambda count: _exactly(source, count)


def _exactly(source: BinaryIO, count: int) -> bytes:
    found = source.read(count)
    if found is None or len(found) < count:
        raise EOFError("the client has gone")
    return found

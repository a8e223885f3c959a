"""The ways in which clients connect, told apart by the first byte: plain Thrift, Thrift in SASL PLAIN, Thrift over HTTP.

With TLS all of them are inside of it.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from functools import partial
from http.client import HTTPException
from io import BufferedReader, BytesIO
from typing import BinaryIO

from hudi_engine.server.binary import ProtocolError, Reader, exactly
from hudi_engine.server.calls import Connection
from hudi_engine.server.passwords import LogIn
from hudi_engine.server.sessions import Sessions
from hudi_engine.server.web import Web

log = logging.getLogger(__name__)

_LOGIN_S = 10.0
"""How long a connection may take until its client is known."""
_LET_GO_S = 1.0
_LOOK_EVERY_S = 0.5
_STRANGERS = 64
"""Least number of connections at a time whose client is not known yet; a further one takes the place of the oldest."""
_MORE_THAN_A_STATEMENT = 1024 * 1024
_CONNECTIONS_OF_A_SESSION = 2
# SASL's states in Thrift.
_START, _GOOD, _BAD, _FAILED, _COMPLETE = 1, 2, 3, 4, 5
_HEAD = struct.Struct("!BI")
_FRAME = struct.Struct("!I")
_MAX_LOGIN_BYTES = 4096
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
        self._lock = threading.Lock()
        self._known: set[socket.socket] = set()
        self._strangers: dict[socket.socket, float] = {}  # oldest first, until when they may be
        self._most = sessions.limits.sessions * _CONNECTIONS_OF_A_SESSION
        self._most_strangers = max(_STRANGERS, sessions.limits.sessions)
        self._closed = threading.Event()
        self._max_message = sessions.limits.statement_bytes + _MORE_THAN_A_STATEMENT
        self._web = Web(sessions, log_in, self._max_message)

    def serve(self) -> None:
        """Take connections until the listener is closed."""
        threading.Thread(target=self._end_silent, name="silent connections", daemon=True).start()
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError as error:
                if self._closed.wait(_LOOK_EVERY_S):
                    return
                log.warning("a connection cannot be taken: %s", error)
                continue
            try:
                client.settimeout(_LOGIN_S)
                if self._tls is not None:
                    client = self._tls.wrap_socket(client, server_side=True, do_handshake_on_connect=False)
            except OSError as error:
                log.debug("a connection ended: %s", error)
                continue
            with self._lock:
                oldest = next(iter(self._strangers)) if len(self._strangers) >= self._most_strangers else None
                self._strangers[client] = time.monotonic() + _LOGIN_S
            if oldest is not None:
                self._end_stranger(oldest, "there are too many others")
            threading.Thread(target=self._serve_one, args=(client,), name="client", daemon=True).start()

    def close(self) -> None:
        """Take no connections any more."""
        self._closed.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def hang_up(self) -> None:
        """End the connections that are left."""
        for each in [*self._known, *self._strangers]:
            with contextlib.suppress(OSError):
                _shut(each)

    def _end_silent(self) -> None:
        """End connections whose client is not known in time, also one that sends a byte now and then."""
        while not self._closed.wait(_LOOK_EVERY_S):
            with self._lock:
                late = [each for each, until in self._strangers.items() if until < time.monotonic()]
            for each in late:
                self._end_stranger(each, f"it did not log in within {_LOGIN_S:g} s")

    def _end_stranger(self, client: socket.socket, why: str) -> None:
        with self._lock:
            if self._strangers.pop(client, None) is None:
                return
        log.info("a connection ended: %s", why)
        with contextlib.suppress(OSError):
            _shut(client)

    def _admit(self, client: socket.socket) -> None:
        """Count a connection among those of clients; ProtocolError where there are as many as may be."""
        with self._lock:
            if client in self._known:
                return
            if self._strangers.pop(client, None) is None:
                raise ProtocolError("the connection was ended before its client was known")
            if len(self._known) < self._most:
                self._known.add(client)
                return
        log.warning("a connection is rejected: there are as many as --max-sessions allows")
        raise ProtocolError("too many connections")

    def _serve_one(self, client: socket.socket) -> None:
        try:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if isinstance(client, ssl.SSLSocket):
                client.do_handshake()
            with client, client.makefile("rb") as received, client.makefile("wb") as sent:
                self._speak(client, received, sent)
        except (OSError, EOFError, ProtocolError, HTTPException, ValueError) as error:
            log.debug("a connection ended: %s", error)
        except Exception:
            log.warning("a connection ended by an error of the server", exc_info=True)
        finally:
            with self._lock:
                self._known.discard(client)
                self._strangers.pop(client, None)
            client.close()

    def _speak(self, client: socket.socket, received: BufferedReader, sent: BinaryIO) -> None:
        first = received.peek(1)[:1]
        if first == bytes([_START]):
            user = _sasl_log_in(received, sent, self._log_in, partial(self._admit, client))
            client.settimeout(None)
            self._binary(_Frames(received, sent, self._max_message), user if self._log_in else None)
        elif first in (b"P", b"G", b"H", b"O"):
            self._http(client, received, sent)
        elif self._log_in is not None:
            raise ProtocolError("a client without user and password: it has to use SASL PLAIN, or HTTP")
        elif first:
            self._admit(client)
            client.settimeout(None)
            self._binary(_Plain(received, sent), None)

    def _binary(self, stream: _Plain | _Frames, user: str | None) -> None:
        connection = Connection(self._sessions, user)
        try:
            while True:
                call = Reader(stream.read, self._max_message).message()
                answer = connection.answer(call)
                stream.write(answer)
                self._sessions.history.sent(len(answer))
        finally:
            connection.close()

    def _http(self, client: socket.socket, received: BufferedReader, sent: BinaryIO) -> None:
        """Answer requests of one connection; its sessions go on when it ends, as clients may take another one."""
        while True:
            line = received.readline(_MAX_LINE)
            if not line.strip():
                return
            client.settimeout(_LOGIN_S)
            answer = self._web.answer(line, received, partial(self._admit, client))
            client.settimeout(None)
            written = answer.written()
            sent.write(written)
            sent.flush()
            self._sessions.history.sent(len(written))
            if not answer.goes_on:
                self._let_go(client, received)
                return
            client.settimeout(max(_LOGIN_S, self._sessions.limits.idle_s))

    @staticmethod
    def _let_go(client: socket.socket, received: BufferedReader) -> None:
        """Read what is still to come, for a while: a connection that is closed before takes the answer with it."""
        client.settimeout(_LET_GO_S)
        left = _MAX_LINE
        while left > 0 and (found := received.read1(left)):
            left -= len(found)


def _shut(client: socket.socket) -> None:
    """End a connection that a thread reads from; the method of one of TLS would make the thread read in clear."""
    socket.socket.shutdown(client, socket.SHUT_RDWR)


def _sasl_log_in(received: BinaryIO, sent: BinaryIO, log_in: LogIn | None, admit: Callable[[], None]) -> str:
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
    admit()
    _sasl_send(sent, _COMPLETE, b"")
    return user


def _sasl_message(received: BinaryIO) -> tuple[int, bytes]:
    status, length = _HEAD.unpack(exactly(received, _HEAD.size))
    if length > _MAX_LOGIN_BYTES:
        raise ProtocolError(f"{length} bytes to log in")
    return status, exactly(received, length)


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
            (length,) = _FRAME.unpack(exactly(self._received, _FRAME.size))
            if length > self._limit:
                raise ProtocolError(f"a frame of {length} bytes; at most {self._limit} are allowed")
            self._frame = BytesIO(exactly(self._received, length))
            found += self._frame.read(count - len(found))
        return found

    def write(self, message: bytes) -> None:
        self._sent.write(_FRAME.pack(len(message)) + message)
        self._sent.flush()


def _reading(source: BinaryIO) -> Callable[[int], bytes]:
    return lambda count: exactly(source, count)

"""Requests of HTTP: Thrift in ``POST``, the page of the server, its metrics, and whether it lives.

Pages of other sites must not read or do anything here: a request has to name this machine as its host where nobody logs in
(else a site could give its own name this machine's address), must not come from another site, and a form has to bring the
page's token.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http.client import parse_headers
from io import BufferedReader, BytesIO
from ipaddress import ip_address
from urllib.parse import parse_qs, urlsplit

from hudi_engine.server.binary import Reader, exactly
from hudi_engine.server.calls import Connection
from hudi_engine.server.history import shown_text
from hudi_engine.server.page import CANCEL, STATEMENT, TABLES, TOKEN, Page
from hudi_engine.server.passwords import LogIn
from hudi_engine.server.sessions import PENDING, Sessions
from hudi_engine.spark.jvm.session import is_running
from hudi_engine.spark.sql.failure import failure_of

log = logging.getLogger(__name__)
_THRIFT, _FORM, _TEXT = (
    "application/x-thrift",
    "application/x-www-form-urlencoded",
    "text/plain; charset=utf-8",
)
_HTML, _METRICS = "text/html; charset=utf-8", "text/plain; version=0.0.4; charset=utf-8"
_MAX_FORM_BYTES = 4096
_HEALTH = "/healthz"
_REALM = ("WWW-Authenticate", 'Basic realm="dbt-hudi", charset="UTF-8"')
_OF_PAGES = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Content-Security-Policy", "frame-ancestors 'none'"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "same-origin"),
)


@dataclass(frozen=True)
class Answer:
    """What a request gets.

    Args:
        goes_on: Whether the connection may be used again; those of browsers, which would keep a place each, are not.
    """

    status: str
    body: bytes = b""
    kind: str = _TEXT
    headers: tuple[tuple[str, str], ...] = ()
    goes_on: bool = False

    def written(self) -> bytes:
        """Return the answer as HTTP has it."""
        given = {
            "Content-Type": self.kind,
            "Content-Length": str(len(self.body)),
            **dict(self.headers),
            "Connection": "keep-alive" if self.goes_on else "close",
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        return f"HTTP/1.1 {self.status}\r\n{head}\r\n".encode() + self.body


@dataclass(frozen=True)
class _Request:
    """A request without its body."""

    method: str
    path: str
    headers: Mapping[str, str]

    @property
    def is_keeping(self) -> bool:
        """Whether the client wants to use the connection again."""
        return self.headers.get("connection", "").lower() != "close"


class _RejectedError(Exception):
    """A request that gets another answer than it wants."""

    def __init__(self, status: str, reason: str = "", *headers: tuple[str, str]) -> None:
        super().__init__(status)
        self.answer = Answer(status, f"{reason or status}\n".encode(), headers=headers)


class Web:
    """Answers requests.

    Args:
        log_in: Checks user and password; None lets everyone in that names this machine.
        max_message: Longest message of Thrift, in bytes.
    """

    def __init__(self, sessions: Sessions, log_in: LogIn | None, max_message: int) -> None:
        self._sessions, self._log_in, self._max_message = sessions, log_in, max_message
        self._page = Page(sessions)
        self._key = secrets.token_bytes(32)

    def answer(self, line: bytes, received: BufferedReader, admit: Callable[[], None]) -> Answer:
        """Return the answer to a request.

        Args:
            line: The first line.
            admit: Is called when the client is known to be one.
        """
        try:
            request = _read_request(line, received)
            if request.path == _HEALTH:
                return self._health(request)
            self._check_site(request)
            if request.method == "GET":
                return self._get(request, self._user(request, admit))
            if request.method != "POST":
                raise _RejectedError("405 Method Not Allowed", "GET and POST", ("Allow", "GET, POST"))
            if request.path == CANCEL:
                return self._cancel(request, received, admit)
            return self._call(request, received, admit)
        except _RejectedError as rejected:
            return rejected.answer

    def _check_site(self, request: _Request) -> None:
        """Reject what a page of another site sends; browsers name themselves by these headers."""
        host = _host(request.headers.get("host", ""))
        if self._log_in is None and not is_loopback(host):
            raise _RejectedError(
                "421 Misdirected Request", "without --auth the server answers to localhost and 127.0.0.1 only"
            )
        site, mode = request.headers.get("sec-fetch-site", "none"), request.headers.get("sec-fetch-mode")
        is_link = request.method == "GET" and mode == "navigate"
        if site not in ("none", "same-origin") and not is_link:
            raise _RejectedError("403 Forbidden")
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
            raise _RejectedError("403 Forbidden")

    def _user(self, request: _Request, admit: Callable[[], None]) -> str | None:
        """Return who has logged in; None where nobody has to."""
        user, password = _basic(request.headers.get("authorization", ""))
        if self._log_in is not None and not self._log_in(user, password):
            if user:
                log.warning("a client was not let in: user %r or the password is wrong", user[:64])
            raise _RejectedError("401 Unauthorized", "user and password are asked for (HTTP Basic)", _REALM)
        admit()
        return user if self._log_in else None

    def _health(self, request: _Request) -> Answer:
        """Whether the server takes statements: without a login, as it names nothing."""
        if request.method != "GET":
            raise _RejectedError("405 Method Not Allowed", "GET", ("Allow", "GET"))
        try:
            is_serving = not self._sessions.is_stopping and self._sessions.on_spark(is_running)
        except RuntimeError:  # its threads have ended
            is_serving = False
        return (
            Answer("200 OK", b"ok\n") if is_serving else Answer("503 Service Unavailable", b"not serving\n")
        )

    def _get(self, request: _Request, user: str | None) -> Answer:
        if request.path == "/metrics":
            return Answer("200 OK", self._metrics(), _METRICS)
        if request.path == "/":
            shown: str | None = self._page.overview(user, self._token(user))
        elif request.path.startswith(TABLES):
            try:
                shown = self._page.report(request.path)
            except Exception as error:
                reason = shown_text(failure_of(error).message)
                raise _RejectedError("500 Internal Server Error", f"no report: {reason}") from error
        else:
            shown = None
        if shown is None:
            raise _RejectedError("404 Not Found", "there are /, /metrics, /healthz, and POST for Thrift")
        return Answer("200 OK", shown.encode(), _HTML, _OF_PAGES)

    def _metrics(self) -> bytes:
        running = self._sessions.running
        waiting = sum(each.state == PENDING for each in running)
        return self._sessions.history.exposition(
            sessions=self._sessions.count, running=len(running) - waiting, waiting=waiting
        )

    def _cancel(self, request: _Request, received: BufferedReader, admit: Callable[[], None]) -> Answer:
        """Cancel the statement of a form of the page."""
        user = self._user(request, admit)
        fields = parse_qs(self._body(request, received, _FORM, _MAX_FORM_BYTES).decode("utf-8", "replace"))
        token, handle = (fields.get(name, [""])[0] for name in (TOKEN, STATEMENT))
        if not hmac.compare_digest(token.encode(), self._token(user).encode()):
            raise _RejectedError("403 Forbidden", "the form is not one of this page: load it again")
        self._sessions.cancel(handle, user)  # one that has ended meanwhile is shown as such
        return Answer("303 See Other", headers=(("Location", "/"),))

    def _token(self, user: str | None) -> str:
        return hmac.new(self._key, (user or "").encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    def _call(self, request: _Request, received: BufferedReader, admit: Callable[[], None]) -> Answer:
        """Answer a call of Thrift; browsers, which name the page they are on, make none."""
        if "origin" in request.headers or "sec-fetch-site" in request.headers:
            raise _RejectedError("403 Forbidden")
        user = self._user(request, admit)
        source = BytesIO(self._body(request, received, _THRIFT, self._max_message))
        call = Reader(partial(exactly, source), self._max_message).message()
        answer = Connection(self._sessions, user).answer(call)
        return Answer("200 OK", answer, _THRIFT, goes_on=request.is_keeping)

    def _body(self, request: _Request, received: BufferedReader, kind: str, limit: int) -> bytes:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
            raise _RejectedError("415 Unsupported Media Type", f"POST of {kind} to {request.path[:100]}")
        length = request.headers.get("content-length", "")
        if not (length.isascii() and length.isdecimal()) or "transfer-encoding" in request.headers:
            raise _RejectedError("411 Length Required")
        if int(length) > limit:
            raise _RejectedError("413 Content Too Large")
        return exactly(received, int(length))


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine can reach a host name or address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _read_request(line: bytes, received: BufferedReader) -> _Request:
    words = line.decode("latin-1").split()
    headers = {key.lower(): value for key, value in parse_headers(received).items()}
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[1].startswith("/"):
        raise _RejectedError("400 Bad Request")
    return _Request(words[0], words[1].partition("?")[0], headers)


def _host(header: str) -> str:
    """Return the name in a Host header, without its port."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _basic(header: str) -> tuple[str, str]:
    """Return user and password of HTTP Basic; empty ones where there are none."""
    kind, _, coded = header.partition(" ")
    try:
        decoded = base64.b64decode(coded.strip(), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        decoded = ""
    user, _, password = decoded.partition(":") if kind.lower() == "basic" else ("", "", "")
    return user, password

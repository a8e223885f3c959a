"""The report over HTTP, made for each request, for a browser of this machine."""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from hudi_engine.errors import ConfigError, HudiError
from hudi_engine.format.config.options import Options
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.report.facts import gather
from hudi_engine.table.report.page import page
from hudi_engine.table.state import TableState

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
_PATIENCE_S = 30


@dataclass(frozen=True)
class ReportServer:
    """A server that listens; made by :func:`serve_report`."""

    server: ThreadingHTTPServer
    url: str

    def run(self) -> None:
        """Answer until the process is interrupted or another thread calls :meth:`stop`."""
        try:
            self.server.serve_forever()
        except KeyboardInterrupt:
            logger.info("no more looks at %s", self.url)
        finally:
            self.server.server_close()

    def stop(self) -> None:
        """End :meth:`run`."""
        self.server.shutdown()


def serve_report(
    storage: Storage, options: Options, *, host: str = LOOPBACK, port: int = 0, count_rows: bool = False
) -> ReportServer:
    """Listen for looks at the report of a table.

    Whoever reaches the address sees names, partitions and commits of the table, without a login. So it is an address of
    this machine unless the caller names another one.

    Args:
        host: The address to listen at, such as ``127.0.0.1`` or ``0.0.0.0``.
        port: The port; 0 for one that is free.
        count_rows: Whether logs are merged to know the rows of a merge-on-read table, at each look.

    Raises:
        ConfigError: The address is none, or cannot be listened at.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise ConfigError(
            f"host is {host!r}; legal values: addresses such as {LOOPBACK} or 0.0.0.0"
        ) from None
    if not 0 <= port < 65536:
        raise ConfigError(f"port is {port}; legal values: 0 (one that is free) to 65535")

    def made() -> bytes:
        return page(gather(TableState.load(storage), options, count_rows=count_rows)).encode()

    class _Server(ThreadingHTTPServer):
        daemon_threads = True
        address_family = socket.AF_INET if address.version == 4 else socket.AF_INET6

        def server_bind(self) -> None:
            # The library's own looks the host's name up, which may ask the network.
            self.socket.bind(self.server_address)
            self.server_address = self.socket.getsockname()

    try:
        server = _Server((host, port), _handler(made, anywhere=not address.is_loopback))
    except OSError as error:
        raise ConfigError(f"nothing can listen at {host} port {port}: {error.strerror or error}") from error
    name = str(address) if address.version == 4 else f"[{address}]"
    return ReportServer(server, f"http://{name}:{server.server_address[1]}/")


def _handler(made: Callable[[], bytes], *, anywhere: bool) -> type[BaseHTTPRequestHandler]:
    """Return what answers a request: the page, and nothing else that lies anywhere.

    Args:
        anywhere: Whether requests for other names than this machine's own are answered; else a page of the web whose
            name was made to lead here could read the answer.
    """
    one_at_a_time = Lock()

    class _Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE_S
        server_version = "hudi-engine"
        sys_version = ""

        def do_GET(self) -> None:
            self._answer(send_body=True)

        def do_HEAD(self) -> None:
            self._answer(send_body=False)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            logger.info("look from %s: " + format, self.client_address[0], *args)

        def _answer(self, *, send_body: bool) -> None:
            status, kind, body = self._content()
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("X-Frame-Options", "DENY")
            self.send_header("Referrer-Policy", "no-referrer")
            self.end_headers()
            if send_body:
                self.wfile.write(body)

        def _content(self) -> tuple[HTTPStatus, str, bytes]:
            if not anywhere and not _is_own_name(self.headers.get("Host", "")):
                return (
                    HTTPStatus.FORBIDDEN,
                    "text/plain",
                    b"ask for this page by the address that was printed\n",
                )
            if self.path.partition("?")[0] != "/":
                return HTTPStatus.NOT_FOUND, "text/plain", b"there is one page here, at /\n"
            try:
                with one_at_a_time:
                    return HTTPStatus.OK, "text/html", made()
            except (HudiError, OSError) as error:
                logger.warning("the report could not be made: %s", error)
                return HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain", f"{error}\n".encode()

    return _Handler


def _is_own_name(host: str) -> bool:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False

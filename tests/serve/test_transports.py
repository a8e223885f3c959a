"""Ways in: SASL, HTTP, TLS, users and passwords, and who is not let in."""

from __future__ import annotations

import base64
import contextlib
import http.client
import socket
import ssl
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import thrift.transport.THttpClient
import thrift.transport.TSSLSocket
import thrift_sasl
from hudi_engine.errors import ConfigError
from hudi_engine.server import transports
from hudi_engine.server.passwords import Passwords, add_user
from hudi_engine.server.server import HudiServer, ServerOptions, check_options
from pyhive import hive
from pyhive.sasl_compat import PureSASLClient
from thrift.transport.TTransport import TTransportException

Start = Callable[..., HudiServer]
SELECT = "select 'through' way"


def answer(**options: Any) -> list[tuple[Any, ...]]:
    with hive.connect(**options) as connection:
        cursor = connection.cursor()
        cursor.execute(SELECT)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


@pytest.fixture(scope="session")
def guarded(start_server: Start, users: str) -> HudiServer:
    return start_server(log_in=Passwords.load(users).check)


def test_one_port_takes_all_transports(server: HudiServer) -> None:
    place = {"host": "127.0.0.1", "port": server.port}
    assert answer(**place, auth="NOSASL") == [("through",)]
    assert answer(**place) == [("through",)]  # SASL PLAIN, as PyHive and beeline do by default
    assert answer(**place, scheme="http") == [("through",)]


def test_users_are_let_in_by_their_password(guarded: HudiServer) -> None:
    place = {"host": "127.0.0.1", "port": guarded.port}
    assert answer(**place, username="ann", password="sëcret: yes", auth="LDAP") == [("through",)]
    assert answer(**place, username="ann", password="sëcret: yes", scheme="http", auth="BASIC") == [
        ("through",)
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"username": "ann", "password": "sëcret: no", "auth": "LDAP"},
        {"username": "eve", "password": "other", "auth": "LDAP"},
        {"auth": "NOSASL"},
        {},
        {"username": "bob", "password": "sëcret: yes", "scheme": "http", "auth": "BASIC"},
    ],
    ids=["wrong-password", "unknown-user", "no-sasl", "no-password", "http"],
)
def test_others_are_not_let_in(guarded: HudiServer, options: dict[str, str]) -> None:
    with pytest.raises((TTransportException, ConnectionError, EOFError)):
        answer(host="127.0.0.1", port=guarded.port, **options)


def test_a_session_is_its_users_alone(guarded: HudiServer) -> None:
    def login(user: str, password: str) -> hive.Connection:
        return hive.connect("127.0.0.1", guarded.port, username=user, password=password, auth="LDAP")

    with login("ann", "sëcret: yes") as ann, login("bob", "other") as bob:
        bob._sessionHandle, own = ann._sessionHandle, bob._sessionHandle
        with pytest.raises(hive.OperationalError, match="session is not known"):
            bob.cursor().execute(SELECT)
        bob._sessionHandle = own


def test_everything_goes_through_tls(start_server: Start, certificate: tuple[str, str], users: str) -> None:
    server = start_server(tls=certificate, log_in=Passwords.load(users).check)
    context = ssl.create_default_context(cafile=certificate[0])
    raw = thrift.transport.TSSLSocket.TSSLSocket("localhost", server.port, ssl_context=context)

    def client() -> PureSASLClient:
        return PureSASLClient(
            "localhost", service="hive", username="ann", password="sëcret: yes", mechanism="PLAIN"
        )

    transport = thrift_sasl.TSaslClientTransport(client, "PLAIN", raw)
    assert answer(thrift_transport=transport) == [("through",)]
    over_http = thrift.transport.THttpClient.THttpClient(
        f"https://localhost:{server.port}/cliservice", ssl_context=context
    )
    login = base64.b64encode(b"bob:other").decode()
    over_http.setCustomHeaders({"Authorization": f"Basic {login}"})
    assert answer(thrift_transport=over_http) == [("through",)]
    with pytest.raises((TTransportException, ConnectionError, EOFError)):
        answer(host="127.0.0.1", port=server.port)


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {}, 404),
        ("PUT", {}, 405),
        ("POST", {"Content-Type": "text/plain"}, 415),
        ("POST", {"Content-Type": "application/x-thrift", "Origin": "https://example.com"}, 403),
        ("POST", {"Content-Type": "application/x-thrift", "Content-Length": "99999999999"}, 413),
        ("POST", {"Content-Type": "application/x-thrift", "Transfer-Encoding": "chunked"}, 411),
    ],
)
def test_pages_in_a_browser_run_nothing(
    server: HudiServer, method: str, headers: dict[str, str], status: int
) -> None:
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    client.request(method, "/cliservice", headers=headers)
    assert client.getresponse().status == status


class TestStrangers:
    """Connections that do not say who they are."""

    @pytest.fixture(autouse=True)
    def _soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(transports, "_LOGIN_S", 2.0)

    def test_they_take_no_places_of_users(self, guarded: HudiServer) -> None:
        place = {"host": "127.0.0.1", "port": guarded.port}
        silent = [socket.create_connection(("127.0.0.1", guarded.port)) for _ in range(250)]
        try:
            for _ in range(3):
                assert answer(**place, username="ann", password="sëcret: yes", auth="LDAP") == [("through",)]
        finally:
            for each in silent:
                each.close()

    @pytest.mark.parametrize("begin", [b"", b"\x01", b"G", b"POST / HTTP/1.1\r\n"])
    def test_they_are_ended_also_if_they_send_a_byte_now_and_then(
        self, guarded: HudiServer, begin: bytes
    ) -> None:
        with socket.create_connection(("127.0.0.1", guarded.port), timeout=0.4) as stranger:
            stranger.sendall(begin)
            started = time.monotonic()
            while time.monotonic() - started < 20:
                try:
                    if not stranger.recv(1000):
                        break
                except TimeoutError:
                    with contextlib.suppress(OSError):
                        stranger.sendall(b"a" if begin else b"")
                except ConnectionError:
                    break
            assert 1 < time.monotonic() - started < 10

    def test_a_user_who_is_silent_stays(self, guarded: HudiServer) -> None:
        with hive.connect(
            "127.0.0.1", guarded.port, username="bob", password="other", auth="LDAP"
        ) as connection:
            time.sleep(4)
            cursor = connection.cursor()
            cursor.execute(SELECT)
            assert cursor.fetchall() == [("through",)]


def test_beyond_the_machine_a_password_is_asked_for() -> None:
    for host in ("0.0.0.0", "::", "192.168.1.5", "db.example.com", ""):
        with pytest.raises(ConfigError, match="--auth FILE"):
            check_options(ServerOptions(host=host, tls=("cert.pem", "key.pem")))
        check_options(ServerOptions(host=host, log_in=lambda *_: True))
    for host in ("127.0.0.1", "127.0.0.5", "::1", "localhost"):
        check_options(ServerOptions(host=host))


class TestFileOfUsers:
    def test_it_holds_hashes_that_only_its_owner_reads(self, users: str) -> None:
        text = Path(users).read_text("utf-8")
        assert [line.partition(":scrypt$")[0] for line in text.splitlines()] == ["ann", "bob"]
        assert "other" not in text
        assert stat.S_IMODE(Path(users).stat().st_mode) == 0o600

    def test_a_new_password_takes_the_place_of_the_old_one(self, tmp_path: Path) -> None:
        path = str(tmp_path / "users")
        add_user(path, "ann", "first")
        add_user(path, "ann", "second")
        known = Passwords.load(path)
        assert [known.check("ann", each) for each in ("first", "second", "second", "first")] == [
            False, True, True, False,
        ]  # fmt: skip

    def test_wrong_lines_are_named(self, tmp_path: Path) -> None:
        path = tmp_path / "users"
        for text, reason in (
            ("# none\n", "there is no user"),
            ("ann:plain\n", "line 1 of"),
            ("\nann:scrypt$99$8$1$a$b\n", "line 2 of"),
        ):
            path.write_text(text)
            with pytest.raises(ConfigError, match=reason):
                Passwords.load(str(path))
        with pytest.raises(ConfigError, match="cannot be read"):
            Passwords.load(str(tmp_path / "nothing"))
        with pytest.raises(ConfigError, match="colon"):
            add_user(str(path), "a:b", "x")

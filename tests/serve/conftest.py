"""One warehouse on one Spark session for all tests of this folder."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hudi_engine.server.passwords import add_user
from hudi_engine.server.server import HudiServer, ServerOptions
from hudi_engine.spark.sql.held_drops import Holds
from hudi_engine.spark.sql.router import StatementRouter
from hudi_engine.spark.sql.session import StatementSession
from pyhive import hive

from dbt.adapters.hudi.credentials import HudiCredentials
from dbt.adapters.hudi.serve.warehouse import Served, ServedWarehouse
from dbt.adapters.hudi.spark.session import leave_spark
from tests.functional.conftest import SPARK_CONF


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWarehouse]:
    """A warehouse with a schema ``shop``."""
    root = str(tmp_path_factory.mktemp("served"))
    credentials = HudiCredentials(schema="shop", location_root=root, spark_conf=dict(SPARK_CONF))
    made = ServedWarehouse(credentials, None, writes=True)
    made.create_schema(made.open_session(), "shop")
    yield made
    leave_spark()


@pytest.fixture
def open_session(warehouse: ServedWarehouse) -> Iterator[Callable[..., StatementSession]]:
    """Open statement sessions, with the options that a test gives."""
    opened: list[StatementSession] = []
    holds: Holds = {}

    def make(**options: Any) -> StatementSession:
        given = {"holds": holds, **options}
        opened.append(
            StatementSession(warehouse.open_session(), warehouse, StatementRouter(warehouse), **given)
        )
        return opened[-1]

    yield make
    for each in opened:
        each.close()


@pytest.fixture(scope="session")
def start_server(warehouse: ServedWarehouse) -> Iterator[Callable[..., HudiServer]]:
    """Start servers of the warehouse, with the options that a test gives."""
    started: list[HudiServer] = []

    def start(**options: object) -> HudiServer:
        served = Served(warehouse, hold_drops_s=60)
        server = HudiServer(served.open, ServerOptions(**{"port": 0, "grace_s": 0, **options}), served.adopt)
        server.start()
        started.append(server)
        return server

    yield start
    for each in started:
        each.stop()


@pytest.fixture(scope="session")
def server(start_server: Callable[..., HudiServer]) -> HudiServer:
    """A server that lets everyone in."""
    return start_server()


@pytest.fixture
def connect(server: HudiServer) -> Iterator[Callable[..., hive.Connection]]:
    """Connect PyHive to the server, without SASL unless a test says so."""
    opened: list[hive.Connection] = []

    def make(**options: object) -> hive.Connection:
        opened.append(hive.connect(**{"host": "127.0.0.1", "port": server.port, "auth": "NOSASL", **options}))
        return opened[-1]

    yield make
    for each in opened:
        with suppress(Exception):
            each.close()


@pytest.fixture(scope="session")
def users(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("users") / "users"
    add_user(str(path), "ann", "sëcret: yes")
    add_user(str(path), "bob", "other")
    return str(path)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    pem = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(made.public_bytes(pem))
    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(pem, form, none))
    return str(folder / "cert.pem"), str(folder / "key.pem")

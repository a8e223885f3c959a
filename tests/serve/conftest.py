"""One warehouse on one Spark session for all tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
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
        server = HudiServer(
            Served(warehouse, hold_drops_s=60).open, ServerOptions(**{"port": 0, "grace_s": 0, **options})
        )
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

"""One warehouse on one Spark session for all tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hudi_engine.spark.sql.router import StatementRouter
from hudi_engine.spark.sql.session import StatementSession

from dbt.adapters.hudi.credentials import HudiCredentials
from dbt.adapters.hudi.spark.session import leave_spark
from dbt.adapters.hudi.sql.creating import SqlWarehouse
from tests.functional.conftest import SPARK_CONF


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlWarehouse]:
    """A warehouse with a schema ``shop``."""
    root = str(tmp_path_factory.mktemp("served"))
    credentials = HudiCredentials(schema="shop", location_root=root, spark_conf=dict(SPARK_CONF))
    made = SqlWarehouse(credentials, None, writes=True)
    made.create_schema(made.open_session(), "shop")
    yield made
    leave_spark()


@pytest.fixture
def open_session(warehouse: SqlWarehouse) -> Iterator[Callable[..., StatementSession]]:
    """Open statement sessions, with the options that a test gives."""
    opened: list[StatementSession] = []

    def make(**options: float) -> StatementSession:
        opened.append(
            StatementSession(warehouse.open_session(), warehouse, StatementRouter(warehouse), **options)
        )
        return opened[-1]

    yield make
    for each in opened:
        each.close()

"""Hive's JDBC drivers of later releases than the one that comes with Spark, by their standalone jars from Maven Central."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.server.server import HudiServer
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from tests.serve.conftest import server, start_server, warehouse
from tests.serve.test_beeline import TYPES, VALUES
from tools.apache_hudi import fetched_by_maven
from tools.console import CACHE

RELEASES = ("3.1.3", "4.0.1")
__all__ = ["server", "start_server", "warehouse"]


@pytest.fixture(params=RELEASES)
def client(request: pytest.FixtureRequest, server: HudiServer) -> Iterator[Any]:
    """A connection of a driver, in a Java of its own."""
    version = request.param
    coordinates = f"org.apache.hive:hive-jdbc:{version}:jar:standalone"
    folder = Path.home() / ".m2/repository/org/apache/hive/hive-jdbc" / version
    jar = folder / f"hive-jdbc-{version}-standalone.jar"
    if not fetched_by_maven(coordinates, jar, CACHE / "logs" / "jars.log"):
        pytest.skip(f"LEFT OUT: {coordinates} cannot be fetched from Maven Central")
    port = launch_gateway(classpath=str(jar), die_on_exit=True)
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    driver, properties = gateway.jvm.org.apache.hive.jdbc.HiveDriver(), gateway.jvm.java.util.Properties()
    properties.setProperty("user", "ann")
    connection = driver.connect(f"jdbc:hive2://127.0.0.1:{server.port}/default", properties)
    yield connection
    connection.close()
    gateway.shutdown()


def rows(found: Any) -> list[list[str | None]]:
    """Return a result set as texts."""
    count = found.getMetaData().getColumnCount()
    shown = []
    while found.next():
        shown.append([found.getString(place) for place in range(1, count + 1)])
    return shown


def test_metadata_types_merges_and_cancelling(client: Any) -> None:
    statement = client.createStatement()
    statement.execute("create schema if not exists drivers")
    statement.execute(
        "create or replace table drivers.orders using hudi tblproperties (primaryKey = 'id') as select 1 id, 'new' v"
    )
    statement.execute(
        "merge into drivers.orders t using (select 1 id, 'paid' v union all select 2, 'new') s on t.id = s.id "
        "when matched then update set * when not matched then insert *"
    )
    assert rows(statement.executeQuery("select * from drivers.orders order by id")) == [
        ["1", "paid"],
        ["2", "new"],
    ]
    (values,) = rows(statement.executeQuery(TYPES.strip().rstrip(";")))
    assert [each for each in values if each is not None] == VALUES[:-1]

    about = client.getMetaData()
    assert ["drivers"] in [row[:1] for row in rows(about.getSchemas())]
    (table,) = rows(about.getTables(None, "drivers", "ord%", None))
    assert table[1:4] == ["drivers", "orders", "TABLE"]
    columns = rows(about.getColumns(None, "drivers", "orders", "%"))
    assert [row[3] for row in columns] == ["id", "v"]
    assert [row[3] for row in rows(about.getPrimaryKeys(None, "drivers", "orders"))] == ["id"]
    assert rows(about.getTypeInfo()) and about.getDatabaseProductName() == "Spark SQL"

    failed: list[str] = []

    def run() -> None:
        try:
            statement.executeQuery("select count(*) from range(3000000000) a where hash(a.id) = 7")
        except Py4JJavaError as error:
            failed.append(str(error.java_exception))

    running = threading.Thread(target=run)
    running.start()
    time.sleep(3)
    assert running.is_alive()
    statement.cancel()
    running.join(60)
    assert failed and "cancel" in failed[0].lower()

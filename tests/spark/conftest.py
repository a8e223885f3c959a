"""One Spark session for all tests of this folder: small, quiet, in memory."""

from __future__ import annotations

import os
import sys

import pytest

from tests.helpers.plans import PLANS_AS_THEY_ARE


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A local session with two cores, UTC, two shuffle partitions and the in-memory catalog."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from hudi_engine.catalog import session_conf
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.sql.session.timeZone", "UTC")
        .config(map={**session_conf(), **PLANS_AS_THEY_ARE})
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def database(spark, request):
    """A fresh schema, dropped afterwards."""
    name = "db_" + "".join(each if each.isalnum() else "_" for each in request.node.name.lower())[:60]
    spark.sql(f"DROP DATABASE IF EXISTS `{name}` CASCADE")
    spark.sql(f"CREATE DATABASE `{name}`")
    yield name
    spark.sql(f"DROP DATABASE IF EXISTS `{name}` CASCADE")

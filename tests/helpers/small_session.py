"""The Spark session of tests: small, quiet, in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any


def small_session(warehouse: str, cores: int = 2, more: Mapping[str, str] = MappingProxyType({})) -> Any:
    """Start a session, or return the one that runs.

    Args:
        warehouse: Folder of its warehouse.
        cores: Threads of its tasks.
        more: Further settings.
    """
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.codegen.cache.maxEntries": "2000",
        "spark.sql.warehouse.dir": warehouse,
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        **more,
    }
    builder = SparkSession.builder.master(f"local[{cores}]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session

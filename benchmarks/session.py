"""The Spark sessions of the benchmarks."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession


def small_session() -> SparkSession:
    """Return a quiet session with two tasks at a time and 2 GiB."""
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "2g")
        .config("spark.log.level", "ERROR")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )


def system_arguments() -> argparse.ArgumentParser:
    """Return the arguments of a process that measures systems: where data and tables go, how many rows, jars."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--jars", default="")
    return parser


def large_session(conf: Mapping[str, str], jars: str, folder: Path) -> SparkSession:
    """Return a silent session with two tasks at a time and 8 GiB.

    Args:
        conf: Settings of the systems measured in it.
        jars: Their jars, comma separated.
        folder: Where its warehouse goes.
    """
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.driver.memory": "8g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.showConsoleProgress": "false",
        **conf,
    }
    if jars:
        settings["spark.jars"] = jars
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark

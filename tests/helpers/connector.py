"""Spark's own client of S3, which reads tables by name."""

from __future__ import annotations

import pyspark
import pytest

from benchmarks.jars import fetch
from tests.helpers.s3_server import S3Server

# By PySpark, whose Hadoop says which: hadoop-aws, and what it needs of Amazon's.
_JARS = {
    "3.5": ("org.apache.hadoop:hadoop-aws:3.3.4", "com.amazonaws:aws-java-sdk-bundle:1.12.262"),
    "4.3": (
        "org.apache.hadoop:hadoop-aws:3.5.0",
        "software.amazon.awssdk:bundle:2.35.4",
        "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
    ),
}


def spark_conf_for(server: S3Server) -> dict[str, str]:
    """Return what Spark is told to read from a server; skips the test by name where the jars cannot be had."""
    version = ".".join(pyspark.__version__.split(".")[:2])
    jars = fetch(_JARS[version]) if version in _JARS else None
    if jars is None:
        pytest.skip(f"no hadoop-aws for PySpark {version}: it takes Maven and the jars {_JARS.get(version)}")
    return {
        "spark.jars": ",".join(map(str, jars)),
        "spark.hadoop.fs.s3a.endpoint": server.endpoint,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.access.key": "tester",
        "spark.hadoop.fs.s3a.secret.key": "not-a-secret",
    }

"""What makes the JVMs of the tests quick: a class-data-sharing archive for their start, and options for a life of minutes.

The JVM checks an archive against its own build and the jars; one that does not fit is left unused, without a word.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tools.console import CACHE, logged
from tools.environments import Environment

_FOLDER = CACHE / "classes"
# Tests run everything a few times. The quick compiler's code needs more room than it gets by itself, or the JVM sweeps and
# compiles again; young garbage of many small queries goes in a few collections; nobody looks at the plans of Spark's pages.
_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -XX:NewSize=256m -Xlog:disable "
    "-Dspark.sql.ui.explainMode=simple"
)
# What most sessions of the tests load: SQL, a shuffle, a join, Parquet.
_TRAINING = """
import sys
from pyspark.sql import SparkSession
session = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .getOrCreate()
)
rows = session.createDataFrame([(1, "a"), (2, "b")], "id int, name string")
rows.groupBy("name").count().join(rows, "name").orderBy("id").collect()
rows.write.mode("overwrite").parquet(sys.argv[1])
session.read.parquet(sys.argv[1]).where("id > 1").collect()
session.stop()
"""


def ensure_class_archive(environment: Environment, env: dict[str, str]) -> None:
    """Make the archive of an environment if it is missing; without one sessions only start slower.

    Args:
        environment: The environment with the PySpark.
        env: The variables of its commands.
    """
    archive = _archive(environment, env)
    if archive is None or archive.exists():
        return
    _FOLDER.mkdir(parents=True, exist_ok=True)
    part = archive.with_suffix(".part")
    made = {**env, "SPARK_SUBMIT_OPTS": f"-XX:ArchiveClassesAtExit={part} {_OPTIONS}"}
    command = [str(environment.python), "-c", _TRAINING, str(archive.with_suffix(".rows"))]
    try:
        logged(command, CACHE / "logs" / "classes.log", env=made)
    except subprocess.CalledProcessError:
        return
    shutil.rmtree(archive.with_suffix(".rows"), ignore_errors=True)
    if part.exists():
        part.replace(archive)


def java_variables(environment: Environment, env: dict[str, str]) -> dict[str, str]:
    """Give the variables that make Spark's JVM quick: its options, and the archive where there is one."""
    archive = _archive(environment, env)
    shared = f"-XX:SharedArchiveFile={archive}" if archive is not None and archive.exists() else ""
    given = env.get("SPARK_SUBMIT_OPTS", "")
    return {"SPARK_SUBMIT_OPTS": " ".join(filter(None, (given, shared, _OPTIONS)))}


def _archive(environment: Environment, env: dict[str, str]) -> Path | None:
    """Return the archive's path, which names Java and jars; None when a path could not be an option of the JVM."""
    jars = sorted(environment.path.glob("lib/python*/site-packages/pyspark/jars/*.jar"))
    if not jars or " " in str(_FOLDER):
        return None
    digest = hashlib.sha256(os.fsencode(env["JAVA_HOME"]))
    for jar in (Path(env["JAVA_HOME"], "release"), *jars):
        if jar.exists():
            digest.update(f"{jar}{jar.stat().st_size}{jar.stat().st_mtime_ns}".encode())
    return _FOLDER / f"spark-{digest.hexdigest()[:16]}.jsa"

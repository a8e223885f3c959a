"""Bringing in Apache Hudi itself, which the tests and the demo use as an independent reader and writer.

It runs on PySpark 3.5 in an environment of its own, from the bundle jar that its project publishes. Nothing
of the package needs it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

from tools.class_archive import java_variables
from tools.console import CACHE, SetupError, detail, logged, say, seconds_since
from tools.environments import SPARK35, Environment, ensure

VERSIONS = ("0.15.0", "1.2.0")
OF_THE_LONG_TIER = "1.0.2"
"""The release that writes table version 8; left out where it cannot be fetched."""
GROUP, ARTIFACT = "org.apache.hudi", "hudi-spark3.5-bundle_2.12"
DESCRIPTION = CACHE / "apache-hudi.json"


def ensure_apache_hudi(environment: Environment = SPARK35) -> str | None:
    """Make Apache Hudi usable: its environment and the jar of each version.

    Writes ``.cache/apache-hudi.json`` (``python``, ``java_home``, ``jars`` by version, ``variables``) for tests and demo.

    Args:
        environment: The environment it runs in.

    Returns:
        None when all is there, else one line that says why Apache Hudi is left out.
    """
    try:
        env = ensure(environment)
        jars = {version: str(_jar(version, env)) for version in VERSIONS}
        with suppress(SetupError):
            jars[OF_THE_LONG_TIER] = str(_jar(OF_THE_LONG_TIER, env))
    except SetupError as error:
        DESCRIPTION.unlink(missing_ok=True)
        return str(error)
    DESCRIPTION.parent.mkdir(parents=True, exist_ok=True)
    # Another tier may be reading it.
    part = DESCRIPTION.with_suffix(f".{threading.get_ident()}")
    part.write_text(
        json.dumps(
            {
                "python": str(SPARK35.python),
                "java_home": env["JAVA_HOME"],
                "jars": jars,
                "variables": java_variables(SPARK35, env),
            },
            indent=1,
        )
    )
    part.replace(DESCRIPTION)
    return None


def _jar(version: str, env: dict[str, str]) -> Path:
    cached = CACHE / "jars" / f"{ARTIFACT}-{version}.jar"
    if cached.exists():
        return cached
    start = time.monotonic()
    say(f"fetching Apache Hudi {version} (about 100 MB, kept in .cache/jars)")
    cached.parent.mkdir(parents=True, exist_ok=True)
    local = Path.home() / ".m2/repository" / GROUP.replace(".", "/") / ARTIFACT / version / cached.name
    if not local.exists():
        local = _resolve(version, env, local)
    part = cached.with_suffix(".part")
    shutil.copyfile(local, part)
    part.replace(cached)
    detail(f"done in {seconds_since(start)}")
    return cached


def fetched_by_maven(coordinates: str, local: Path, log: Path) -> bool:
    """Fetch a jar with Maven, which knows the user's mirrors; returns whether it is there then.

    Args:
        local: Its place in Maven's own repository.
    """
    if not local.exists() and shutil.which("mvn"):
        plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get"
        try:
            logged(["mvn", "-B", "-q", plugin, "-Dtransitive=false", f"-Dartifact={coordinates}"], log)
        except subprocess.CalledProcessError:
            detail("mvn could not fetch it")
    return local.exists()


def _resolve(version: str, env: dict[str, str], local: Path) -> Path:
    """Fetch the jar with Maven if it is there (it knows the user's mirrors), else with Spark's resolver."""
    log = CACHE / "logs" / "jars.log"
    coordinates = f"{GROUP}:{ARTIFACT}:{version}"
    if fetched_by_maven(coordinates, local, log):
        return local
    ivy = CACHE / "ivy"
    code = (
        "from pyspark.sql import SparkSession; SparkSession.builder.master('local[1]').getOrCreate().stop()"
    )
    submit = (
        f"--packages {coordinates} --conf spark.jars.ivy={ivy} --conf spark.ui.enabled=false pyspark-shell"
    )
    fetched = ivy / "jars" / f"{GROUP}_{ARTIFACT}-{version}.jar"
    try:
        logged([str(SPARK35.python), "-c", code], log, env={**env, "PYSPARK_SUBMIT_ARGS": submit})
    except subprocess.CalledProcessError:
        fetched.unlink(missing_ok=True)
    if not fetched.exists():
        raise SetupError(
            f"{coordinates} could not be fetched from Maven Central (see {os.path.relpath(log)})"
        )
    return fetched

"""Beeline and Hive's JDBC driver, unchanged: those that come with Spark, or others by their jars."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pyspark

SPARK_JARS = Path(pyspark.__file__).parent / "jars"


def beeline_words(url: str, *more: str, jars: Sequence[str] = ()) -> list[str]:
    """Return the command that starts Beeline; jars come before those of Spark."""
    classes = ":".join([*jars, f"{SPARK_JARS}/*"])
    words = ["java", "-Xmx256m", "-cp", classes, "org.apache.hive.beeline.BeeLine", "-u", url, "-n", "ann"]
    return [*words, "--outputformat=tsv2", "--showHeader=true", "--silent=true", "--color=false", *more]


def beeline(url: str, script: str, folder: Path, jars: Sequence[str] = ()) -> list[list[str]]:
    """Run the lines of a script, and return its output as cells of lines; a statement that fails raises AssertionError."""
    file = folder / "script.sql"
    file.write_text(script, "utf-8")
    done = subprocess.run(
        beeline_words(url, "-f", str(file), jars=jars),
        capture_output=True,
        text=True,
        timeout=900,
        cwd=folder,
    )
    assert done.returncode == 0 and "Error:" not in done.stdout + done.stderr, done.stdout + done.stderr
    return [line.split("\t") for line in done.stdout.splitlines() if line.strip()]

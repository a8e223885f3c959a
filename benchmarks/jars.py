"""Jars of the peers, by Maven coordinates."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get"


def fetch(coordinates: Sequence[str]) -> list[Path] | None:
    """Local paths of the jars, fetched with Maven where they are missing; None when one cannot be had."""
    paths = []
    for each in coordinates:
        group, artifact, version = each.split(":")
        name = f"{artifact}-{version}.jar"
        path = Path.home() / ".m2/repository" / group.replace(".", "/") / artifact / version / name
        if not path.exists() and shutil.which("mvn"):
            subprocess.run(
                ["mvn", "-B", "-q", _PLUGIN, "-Dtransitive=false", f"-Dartifact={each}"],
                check=False,
                capture_output=True,
            )
        if not path.exists():
            return None
        paths.append(path)
    return paths

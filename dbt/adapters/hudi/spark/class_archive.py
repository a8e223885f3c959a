"""An archive of Spark's loaded classes in the user's cache, with which Java starts in about two thirds of the time.

The first Spark that dbt starts writes it when its Java ends, which is after dbt is done; later ones map it. Java holds it
against its own build and the jars, and starts as ever when it does not fit, so no run depends on it.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pyspark

from dbt.adapters.hudi.logs import logger

_OLDEST_JAVA = 17
_UNUSED_DAYS = 30
_MAX_ARCHIVES = 3
_WRITTEN_WITHIN_S = 300.0
# Java has the first four bytes of an archive written last; zeros stand there until then.
_UNFINISHED = b"\0\0\0\0"
_USE = "-XX:SharedArchiveFile="
# Messages about an archive that does not fit are dropped; errors are still shown.
_QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
# A folder of files on the class path, as these add, cannot be in an archive.
_MORE_CLASSES = (
    "SPARK_CONF_DIR",
    "HADOOP_CONF_DIR",
    "YARN_CONF_DIR",
    "SPARK_DIST_CLASSPATH",
    "SPARK_CLASSPATH",
)
_EXTRA_CLASS_PATH = "spark.driver.extraClassPath"
_OWN_CHOICE = re.compile(
    r"SharedArchiveFile|ArchiveClassesAtExit|-Xshare|-Xlog|-javaagent|-agentlib|-agentpath"
)


def archive_options(java: Path, version: str, conf: Mapping[str, str], given: str) -> list[str]:
    """Return the options by which Java uses or writes the archive, none where it cannot; ``given`` options win."""
    try:
        archive = _archive(java, version, conf, given)
        if archive is None:
            return []
        if _is_whole(archive):
            os.utime(archive)
            return [f"{_USE}{archive}", *_QUIET]
        if archive.exists() and time.time() - archive.stat().st_mtime < _WRITTEN_WITHIN_S:
            return []
        _forget_unused(archive.parent)
        return [f"-XX:ArchiveClassesAtExit={archive}", *_QUIET]
    except OSError as error:
        logger.debug("Spark starts without a class archive: {}", str(error))
        return []


def _archive(java: Path, version: str, conf: Mapping[str, str], given: str) -> Path | None:
    """Return the archive's path, which names Java and jars; None where an archive cannot be used."""
    major = re.match(r"\d+", version)
    home = java.resolve().parent.parent
    spark = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    if (
        sys.platform == "win32"
        or major is None
        or int(major[0]) < _OLDEST_JAVA
        or _OWN_CHOICE.search(given)
        or conf.get(_EXTRA_CLASS_PATH)
        or any(os.environ.get(name) for name in _MORE_CLASSES)
        or (spark / "conf").exists()
        or not (home / "lib" / "server" / "classes.jsa").is_file()
    ):
        return None
    folder = _own_folder()
    return None if folder is None else folder / f"spark-{_digest(home, spark)}.jsa"


def _digest(home: Path, spark: Path) -> str:
    known = hashlib.sha256(f"{home}".encode())
    for file in (home / "release", home / "lib" / "modules", *sorted((spark / "jars").glob("*.jar"))):
        if file.exists():
            status = file.stat()
            known.update(f"{file} {status.st_size} {status.st_mtime_ns}".encode())
    return known.hexdigest()[:16]


def _own_folder() -> Path | None:
    """Return the cache's folder, made when it is not there; None when others may write to it or options cannot name it.

    An archive is code, so a folder that somebody else can put files into is not used.
    """
    caches = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    folder = Path(os.environ.get("XDG_CACHE_HOME") or caches) / "dbt-hudi"
    if re.search(r"[\s:'\"\\]", str(folder)) or not folder.is_absolute():
        return None
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    shared = status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return None if shared or not os.access(folder, os.W_OK) else folder


def _is_whole(archive: Path) -> bool:
    try:
        with archive.open("rb") as file:
            return len(start := file.read(len(_UNFINISHED))) == len(_UNFINISHED) and start != _UNFINISHED
    except FileNotFoundError:
        return False


def _forget_unused(folder: Path) -> None:
    """Delete the archives that no start has used for long, as those of a removed Java or Spark, and more than a few."""
    found = sorted(
        ((archive.stat().st_mtime, archive) for archive in folder.glob("spark-*.jsa")), reverse=True
    )
    for number, (used, archive) in enumerate(found, start=2):
        if number > _MAX_ARCHIVES or time.time() - used > _UNUSED_DAYS * 86400:
            archive.unlink(missing_ok=True)

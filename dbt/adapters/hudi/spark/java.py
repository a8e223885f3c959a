"""The Java that Spark runs on: found and checked before Spark starts, and started with its chatter kept off the screen."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import shlex
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyspark
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.spark.jvm import session as jvm
from hudi_engine.spark.jvm.errors import call_errors
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from dbt.adapters.hudi.logs import logger

# The oldest Java of each major version of Spark, and the ones to get.
_OLDEST: Mapping[str, int] = {"3": 8, "4": 17}
_RECOMMENDED = "Java 17 or 21"
_VERSION = re.compile(r"(?:1\.)?(\d+)")
_GET_JAVA = f"install {_RECOMMENDED}, or set JAVA_HOME to where it is"
# What Java and Spark say of themselves whenever they start.
_CHATTER = re.compile(
    r"^(WARNING: (Using incubator modules|A (terminally )?deprecated method|Use --|Please consider reporting|"
    r"sun\.misc\.Unsafe|\S+ has been called by|All illegal access|Restricted methods)|Setting default log level|"
    r"To adjust logging level|Using Spark's default log4j|NOTE: Picked up JDK_JAVA_OPTIONS|Picked up (JAVA_TOOL|_JAVA)_OPTIONS)"
)
_SHOWN_ON_FAILURE = 10
_END_WITHIN_S = 20.0
_STARTED_WITHIN_S = 600.0
_LOOK_EVERY_S = 0.1
# Java answers with its port and the length of the secret that follows.
_HEAD = struct.Struct("!2i")
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_launch: Callable[..., Any] = launch_gateway


def check_java() -> tuple[Path, str]:
    """Return the Java that Spark will run on, and its version; refuses one that is too old."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    found = shutil.which(java)
    if found is None:
        where = f"JAVA_HOME is {home!r}, but {java} is not there" if home else "no Java was found"
        raise DbtRuntimeError(f"Spark {pyspark.__version__} runs on Java, and {where}; {_GET_JAVA}")
    version = _java_version(found)
    major = _VERSION.match(version)
    oldest = _OLDEST.get(pyspark.__version__.partition(".")[0], 17)
    if major is not None and int(major[1]) < oldest:
        raise DbtRuntimeError(
            f"Spark {pyspark.__version__} needs Java {oldest} or newer, but {found} is Java {version}; {_GET_JAVA}"
        )
    return Path(found), version


@lru_cache
def _java_version(java: str) -> str:
    """Return the version of a Java, by its release file, which costs nothing, or by running it."""
    release = Path(java).resolve().parent.parent / "release"
    if release.is_file():
        found = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text(errors="replace"), re.MULTILINE)
        if found:
            return found[1]
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise DbtRuntimeError(f"{java} cannot be run ({error}); {_GET_JAVA}") from error
    found = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    return found[1] if found else "unknown"


def launch_java(conf: Mapping[str, str], folder: str | None) -> None:
    """Start Spark's Java process, unless this one has one; relative paths in SQL count from ``folder``."""
    if SparkContext._gateway is None and _PORT not in os.environ:
        SparkContext._ensure_initialized(gateway=start_java(conf, folder))


def start_java(
    conf: Mapping[str, str], folder: str | None, environment: Mapping[str, str] | None = None
) -> Any:
    """Start a Java process with settings of Spark and return the connection to it.

    Args:
        environment: Of another process for which it is; None for this one's.
    """
    settings = SparkConf(loadDefaults=False)
    for key, value in conf.items():
        settings.set(key, value)
    reading, writing = os.pipe()
    last: list[str] = []
    listener = threading.Thread(target=_listen, args=(reading, last), name="output of Java", daemon=True)
    listener.start()
    options: dict[str, Any] = {"stderr": writing}
    if folder is not None and Path(folder).is_dir():
        options["cwd"] = folder
    try:
        if environment is None:
            gateway = _launch(settings, options)
        else:
            gateway = _launch_for(environment, settings, options)
    except PySparkException as error:
        os.close(writing)
        listener.join(1)
        shown = "\n".join(f"  {line}" for line in last[-_SHOWN_ON_FAILURE:]) or "  nothing"
        raise DbtRuntimeError(
            f"Java did not start for Spark {pyspark.__version__}; look at spark_conf, JAVA_HOME and the memory that is free. "
            f"Its output:\n{shown}"
        ) from error
    os.close(writing)
    return gateway


def _launch_for(environment: Mapping[str, str], settings: SparkConf, options: Mapping[str, Any]) -> Any:
    """Start Java as PySpark does, with the environment of another process."""
    home = environment.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    words = [str(Path(home) / "bin" / "spark-submit")]
    for key, value in settings.getAll():
        words += ["--conf", f"{key}={value}"]
    words += shlex.split(environment.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    with tempfile.TemporaryDirectory() as made:
        answer = Path(made) / "java"
        variables = {**environment, "SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(answer)}
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, env=variables, preexec_fn=_ignore_signals, **options
        )
        until = time.monotonic() + _STARTED_WITHIN_S
        while not answer.is_file() and process.poll() is None and time.monotonic() < until:
            time.sleep(_LOOK_EVERY_S)
        if not answer.is_file():
            process.kill()
            process.wait()
            raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
        content = answer.read_bytes()
    port, length = _HEAD.unpack_from(content)
    gateway = connect_java(port, content[_HEAD.size : _HEAD.size + length].decode())
    gateway.proc = process
    return gateway


def _ignore_signals() -> None:
    """Leave it to the process that started Java to end it, when its writes have ended."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def connect_java(port: int, secret: str) -> Any:
    """Return a connection to a Java that runs."""
    os.environ.update({_PORT: str(port), _SECRET: secret})
    try:
        return launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        # neither for dbt's env_var nor for programs that a project starts
        del os.environ[_PORT], os.environ[_SECRET]


def how_java_ended(within_s: float = 0.0) -> str | None:
    """Return how the Java of this process ended, None while it runs; waits ``within_s`` seconds for its end."""
    gateway: Any = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if process is None:
        return None if gateway is None else _how_others_java_ended(gateway, within_s)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=within_s)
    code = process.poll()
    if code is None:
        return None
    return f"exit code {code}" if code >= 0 else f"killed by signal {-code}"


def _how_others_java_ended(gateway: Any, within_s: float) -> str | None:
    """Return that a Java ended which another process has started; its port does not answer then."""
    given, until = gateway.gateway_parameters, time.monotonic() + within_s
    while True:
        try:
            socket.create_connection((given.address, given.port)).close()
        except OSError as error:
            return f"its port does not answer: {error.strerror}"
        if time.monotonic() >= until:
            return None
        time.sleep(_LOOK_EVERY_S)


def forget_java() -> None:
    """Take away what PySpark keeps of its Java, ended before where it still runs, so that the next session starts another."""
    gateway, context = SparkContext._gateway, SparkContext._active_spark_context
    if how_java_ended() is None:
        if context is not None:
            _stop(context)
        end_java(gateway)
    jvm.forget_java()


def _stop(context: SparkContext) -> None:
    """Stop a context; a Java that is ending by itself does not answer any more, which is no error."""
    root, before, silent = logging.getLogger(), logging.root.manager.disable, logging.NullHandler()
    # the connection to Java logs through the module's functions, which would give a logger without handlers one for the screen
    root.addHandler(silent)
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            context.stop()
    finally:
        logging.disable(before)
        root.removeHandler(silent)


def end_java(gateway: Any) -> None:
    """End a Java that this process started: it ends with its standard input."""
    process = getattr(gateway, "proc", None)
    if process is None:
        return
    with contextlib.suppress(*call_errors()):  # it may have ended by itself
        gateway.shutdown()
    process.stdin.close()
    try:
        process.wait(timeout=_END_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _listen(reading: int, last: list[str]) -> None:
    """Pass on what Java writes, line by line, until it ends."""
    with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            last[:] = [*last[-_SHOWN_ON_FAILURE:], line.rstrip()]
            if _CHATTER.match(line):
                logger.debug("Spark: {}", line.rstrip())
            else:
                os.write(2, line.encode())


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

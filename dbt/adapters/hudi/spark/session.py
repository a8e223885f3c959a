"""The Spark session behind all connections of a process: started once, or found running."""

from __future__ import annotations

import contextvars
import os
import re
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from importlib import resources
from pathlib import Path

import pyspark
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.storage.uris import plain_location
from hudi_engine.spark.jvm.errors import call_errors
from hudi_engine.spark.jvm.session import (
    is_classic,
    is_stopped,
    is_stopped_in_java,
    keep_classes,
    make_active,
)
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from dbt.adapters.hudi.credentials import ANSI, HudiCredentials
from dbt.adapters.hudi.interrupt import is_interrupted
from dbt.adapters.hudi.logs import is_first, logger
from dbt.adapters.hudi.spark.java import archive_options, check_java, forget_java, how_java_ended, launch_java
from dbt.adapters.hudi.spark.lent import SparkWanted, is_lent, lent_session
from dbt.adapters.hudi.spark.memory import warn_of_limit

# PySpark warns at every conversion; what is used of pandas here works with either version
warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")

# What the adapter's SQL relies on; a user's spark_conf wins.
RUNTIME_CONF: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.legacy.createHiveTableByDefault": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # As in Spark 4: dbt puts an ephemeral model into each query that needs it, also inside of another one.
    "spark.sql.legacy.ctePrecedencePolicy": "CORRECTED",
}
_LOCAL_CONF: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
}
# A dbt process lives for seconds: most of what the JIT's last stage compiles in that time is never run often enough to
# pay. Loops still reach it by their iterations, so long jobs lose nothing.
_QUICK_START = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:Tier4InvocationThreshold=200000",
    "-XX:Tier4MinInvocationThreshold=100000",
    "-XX:Tier4CompileThreshold=400000",
)
_FEW_CORES = 2
_LOOK_EVERY_S = 0.2
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_PARTS_OPTIONS = re.compile(r"""[\s"'\\]""")
_JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
_COLLECTOR = re.compile(r"-XX:[+-]Use\w*GC\b")
_NO_PLACE_FOR_DERBY = (
    "catalog is hive, and no metastore is named; one of dbt-hudi's own is a local Derby database below location_root, which "
    "is {!r}. Name yours: spark_conf {{spark.hadoop.hive.metastore.uris: thrift://host:9083}}; or take catalog: directory"
)
_METASTORE_KEYS = (
    "spark.hadoop.javax.jdo.option.ConnectionURL",
    "spark.hadoop.hive.metastore.uris",
    "spark.sql.hive.metastore.jars",
)

# The profile's names of settings.
_PROFILE_NAMES: Mapping[str, str] = {
    "spark.sql.warehouse.dir": "location_root",
    "spark.sql.catalogImplementation": "catalog",
    "spark.app.name": "app_name",
    "spark.master": "master",
    ANSI: "ansi",
}
# Settings of Hadoop that say which names or files there are; credentials are renewed, and the rest is of speed.
_OF_PLACES = re.compile(
    r"spark\.sql\.catalogImplementation|spark\.hadoop\.((javax\.jdo|hive|datanucleus)\..*|fs\.(defaultFS|.*endpoint))"
)
# A run gives the folders of its schemas itself, and the other is a name for people.
_HARMLESS = ("spark.sql.warehouse.dir", "spark.app.name")
# What Spark does not know is read where it is used.
_READ_LATER = ("spark.sql.catalog.", "hoodie.")
_NEXT_STEP = (
    "run this in a process of its own, or stop that Spark before, SparkSession.builder.getOrCreate().stop(), and the next "
    "command starts another"
)

_lock = threading.Lock()
_owned: SparkSession | None = None
_early: Future[None] | None = None
_started_with: Mapping[str, str] = {}
_wanted: SparkWanted | None = None
_runtime_at_start: Mapping[str, str] = {}


def runtime_conf(credentials: HudiCredentials) -> dict[str, str]:
    """Return the settings every session of a profile gets, before those of the profile's spark_conf."""
    return {**RUNTIME_CONF, ANSI: "true" if credentials.ansi else "false"}


def base_session(
    credentials: HudiCredentials, engine_conf: Mapping[str, str], folder: str | None = None
) -> tuple[SparkSession, bool]:
    """Return the process's Spark session, started when there is none, and whether dbt started it."""
    global _early
    try:
        if _early is not None:
            _wait_for(_early)
    except BaseException:
        _early = None
        raise
    return _session(credentials, engine_conf, folder)


def _wait_for(start: Future[None]) -> None:
    """Wait until Spark has started; not on, once dbt was interrupted."""
    if not start.done():
        # now, as dbt has nothing to do but wait; sooner, it would wait for this
        threading.Thread(target=_load_modules, name="modules of the first write", daemon=True).start()
    while not start.done():
        wait((start,), timeout=_LOOK_EVERY_S)
        if is_interrupted():
            raise DbtRuntimeError("interrupted while Spark was starting")
    start.result()


def _session(
    credentials: HudiCredentials, engine_conf: Mapping[str, str], folder: str | None
) -> tuple[SparkSession, bool]:
    global _owned
    with _lock:
        running = _running_session()
        if running is not None:
            if running is _owned:
                _look_at_settings(running, credentials, engine_conf)
            return running, running is _owned
        # Spark's workers must run the Python that dbt runs in, unless the user chose another
        for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
            os.environ.setdefault(variable, sys.executable)
        _owned = _start(credentials, engine_conf, folder)
        return _owned, True


def started_spark() -> SparkWanted:
    """Return what the Spark of this process was started with."""
    assert _wanted is not None
    return _wanted


def leave_dead_spark() -> None:
    """Forget a Spark that dbt started and that has ended, so that the command that begins starts another."""
    if _owned is None or is_stopped(_owned.sparkContext):
        return
    try:
        ended = is_stopped_in_java(_owned.sparkContext)
    except call_errors():
        ended = True
    if ended:
        logger.info(
            "Spark has ended since the last command ({}); another one is started", how_java_ended(1.0)
        )
        leave_spark()


def leave_spark() -> bool:
    """End the Spark that dbt started and return whether there was one; the next command starts another."""
    global _owned, _early
    with _lock:
        there = _owned is not None
        if there:
            forget_java()
        _owned, _early = None, None
    return there


def _look_at_settings(
    spark: SparkSession, credentials: HudiCredentials, engine_conf: Mapping[str, str]
) -> None:
    """Compare the settings of a profile with those that the Spark of this process was started with."""
    conf = _started_with
    if not conf:
        return
    wanted = _start_conf(credentials, engine_conf)
    other = sorted(key for key in {*conf, *wanted} if conf.get(key) != wanted.get(key))
    check_changed_settings(other, wanted, spark)


def names_in_profile(keys: Iterable[str]) -> str:
    """Return settings by what a profile asks for them."""
    return ", ".join(_PROFILE_NAMES.get(key, key) for key in keys)


def check_changed_settings(other: Sequence[str], wanted: Mapping[str, str], spark: SparkSession) -> None:
    """Refuse settings by which names and files are other ones; warn once a command of others that do not count."""
    refused = [key for key in other if _OF_PLACES.fullmatch(key)]
    if refused:
        raise DbtRuntimeError(
            "Spark was started in this process with other settings than the profile asks for now, by which it would find other "
            f"names or files: {names_in_profile(refused)}. They count when Spark starts: {_NEXT_STEP}"
        )
    kept = [
        key
        for key in other
        if key not in _HARMLESS
        and not (key in wanted and (key.startswith(_READ_LATER) or spark.conf.isModifiable(key)))
    ]
    named = names_in_profile(kept)
    if kept and is_first(f"other settings: {named}"):
        logger.warning(
            "Spark was started in this process with other settings than the profile asks for now, and keeps its own: {}. "
            "Where they matter, {}",
            named,
            _NEXT_STEP,
        )


def early_session(
    credentials: HudiCredentials,
    engine_conf: Mapping[str, str],
    folder: str | None,
) -> None:
    """Start Spark in a thread unless one runs; an error is raised where a session is first opened."""
    global _early
    if (_early is not None and not _early.done()) or _running_session() is not None:
        return
    done: Future[None] = Future()
    _early = done
    words = contextvars.copy_context()

    def start() -> None:
        try:
            session, _ = _session(credentials, engine_conf, folder)
        except BaseException as error:
            done.set_exception(error)
            return
        done.set_result(None)
        if (os.cpu_count() or 1) > _FEW_CORES:
            _load_classes(session)

    threading.Thread(target=words.run, args=(start,), name="spark's start", daemon=True).start()


def _load_modules() -> None:
    """Import what the first write needs, while Java starts: most of it is pandas, which pyarrow looks for at its first value."""
    import pyarrow as pa

    pa.scalar(0)
    with suppress(ImportError):
        import pyarrow.acero  # noqa: F401


def _load_classes(session: SparkSession) -> None:
    """Have Java load what every query needs, while dbt is still at its own work and a core is free for it."""
    try:
        session.newSession().sql("select sum(id) from range(1) group by id % 2").collect()
    except Exception as error:
        logger.debug("a first query of no consequence failed: {}", str(error))


def connection_session(
    credentials: HudiCredentials, engine_conf: Mapping[str, str], folder: str | None = None
) -> SparkSession:
    """Return a session for one dbt connection: its own confs and temporary views unless the profile shares them."""
    base, owned = base_session(credentials, engine_conf, folder)
    isolate = credentials.isolate_sessions if credentials.isolate_sessions is not None else owned
    session = base.newSession() if isolate else base
    # a new session has what its Spark was started with; to set one that cannot change costs an exception
    known = _runtime_at_start if owned and isolate else {}
    for key, value in _runtime_settings(credentials, engine_conf).items():
        if known.get(key) != value:
            _set_runtime(session, key, value)
    if is_lent():
        make_active(session)
    return session


def give_settings(
    session: SparkSession, credentials: HudiCredentials, engine_conf: Mapping[str, str]
) -> None:
    """Give a session the settings that one of a dbt connection has."""
    for key, value in _runtime_settings(credentials, engine_conf).items():
        if _runtime_at_start.get(key) != value:
            _set_runtime(session, key, value)


def _runtime_settings(credentials: HudiCredentials, engine_conf: Mapping[str, str]) -> dict[str, str]:
    return {**runtime_conf(credentials), **engine_conf, **credentials.spark_conf}


def _running_session() -> SparkSession | None:
    # what dbt started comes first: the thread's active session can be one that dbt made of it for a node
    for found in (_owned, SparkSession.getActiveSession(), SparkSession._instantiatedSession):
        if found is None:
            continue
        _refuse_connect(found)
        if not is_stopped(found.sparkContext):
            return found
    return None


def _refuse_connect(session: SparkSession) -> None:
    if not is_classic(session):
        raise DbtRuntimeError(
            "a Spark Connect session is running in this process; dbt-hudi needs a classic PySpark session. "
            "Stop it, or run dbt in a process of its own."
        )


def _start(credentials: HudiCredentials, engine_conf: Mapping[str, str], folder: str | None) -> SparkSession:
    """Start Java and Spark, with the class archive of an earlier start where the profile allows it."""
    global _started_with, _runtime_at_start, _wanted
    conf = _start_conf(credentials, engine_conf)
    _started_with = dict(conf)
    _runtime_at_start = _runtime_settings(credentials, engine_conf)
    java, version = check_java()
    warn_of_limit(conf)
    start = time.perf_counter()
    java_conf = dict(conf)
    if credentials.class_archive and conf.get("spark.master", "local").startswith("local"):
        options = archive_options(java, version, conf, _given_java_options(conf))
        java_conf[_JAVA_OPTIONS] = " ".join([*options, conf[_JAVA_OPTIONS]])
    _wanted = SparkWanted(conf, str(java), folder or os.getcwd(), credentials.log_level, java_conf)
    if is_lent():
        session, started = lent_session(_wanted)
    else:
        logger.info("starting Spark {} on Java {} ...", pyspark.__version__, version)
        launch_java(java_conf, folder)
        builder = SparkSession.builder
        for key, value in conf.items():
            builder = builder.config(key, value)
        session, started = builder.getOrCreate(), True
        session.sparkContext.setLogLevel(credentials.log_level)
    keep_classes(session.sparkContext)
    if started:
        logger.info(
            "Spark started in {:.1f} s ({})", time.perf_counter() - start, session.sparkContext.master
        )
    return session


def _start_conf(credentials: HudiCredentials, engine_conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that count only when the session starts; the profile's own win, Java options are joined."""
    root = credentials.location_root
    conf = {
        **runtime_conf(credentials),
        **engine_conf,
        "spark.app.name": credentials.app_name,
        "spark.sql.catalogImplementation": "hive" if credentials.catalog == "hive" else "in-memory",
        "spark.sql.warehouse.dir": plain_location(root),
        # else each call of a column makes three more of Java, to name a line of this program in errors
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }
    java_options = [
        _java_property(
            "log4j2.configurationFile", str(resources.files("dbt.include.hudi").joinpath("log4j2.properties"))
        )
    ]
    master = credentials.spark_conf.get("spark.master") or credentials.master
    if master:
        conf["spark.master"] = master
    if master is None or master.startswith("local"):
        conf.update(_LOCAL_CONF)
        # on two cores a collector with threads of its own is in the way; the JVM refuses to start with two of them
        serial = (os.cpu_count() or 1) <= _FEW_CORES and not _COLLECTOR.search(
            _given_java_options(credentials.spark_conf)
        )
        java_options += [*_QUICK_START, *(["-XX:+UseSerialGC"] if serial else [])]
        conf["spark.sql.shuffle.partitions"] = str(max(8, 2 * (os.cpu_count() or 1)))
    if credentials.catalog == "hive":
        # a column of another type may take a dropped one's place
        conf["spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes"] = "false"
    if credentials.catalog == "hive" and not _metastore_configured(credentials.spark_conf):
        if "://" in root:
            raise DbtRuntimeError(_NO_PLACE_FOR_DERBY.format(root))
        conf[_METASTORE_KEYS[0]] = f"jdbc:derby:;databaseName={root}/metastore_db;create=true"
        java_options.append(_java_property("derby.stream.error.file", f"{root}/derby.log"))
        Path(root).mkdir(parents=True, exist_ok=True)
    conf[_JAVA_OPTIONS] = " ".join(java_options)
    for key, value in credentials.spark_conf.items():
        conf[key] = f"{conf[key]} {value}" if key == _JAVA_OPTIONS else value
    return conf


def _java_property(name: str, value: str) -> str:
    """Return a property as one of several Java options in a text, which Spark takes apart at spaces outside of quotes."""
    text = f"-D{name}={value}"
    if not _PARTS_OPTIONS.search(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _given_java_options(conf: Mapping[str, str]) -> str:
    """Java options of Spark settings and of the environment."""
    return " ".join([conf.get(_JAVA_OPTIONS, ""), *(os.environ.get(name, "") for name in _JAVA_VARIABLES)])


def _metastore_configured(conf: Mapping[str, str]) -> bool:
    folders = [os.environ.get("SPARK_CONF_DIR"), os.environ.get("HIVE_CONF_DIR")]
    return any(key in conf for key in _METASTORE_KEYS) or any(
        folder and (Path(folder) / "hive-site.xml").exists() for folder in folders
    )


def _set_runtime(session: SparkSession, key: str, value: str) -> None:
    """Set what a running session can take; a static setting counts only before Spark starts, and the session keeps its own."""
    if session.conf.get(key, None) == value:
        return
    try:
        session.conf.set(key, value)
    except AnalysisException:
        logger.debug("setting {} cannot be changed in a running Spark session; it stays as it is", key)

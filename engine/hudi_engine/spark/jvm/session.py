"""A session's state in Java: whether it runs, its settings, and the classes that it knows."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pyspark
from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError
from pyspark import RDD, SparkConf, SparkContext
from pyspark.sql import Column, SparkSession

from hudi_engine.spark.jvm.errors import JVM_ERRORS


class Spark3:
    """PySpark 3.5."""

    def __init__(self, packages: Any) -> None:
        self._sql: Any = packages.org.apache.spark.sql

    @property
    def dataset(self) -> Any:
        """The class whose ``ofRows`` makes a DataFrame of a plan."""
        return self._sql.Dataset

    @property
    def session(self) -> Any:
        """The class of sessions."""
        return self._sql.SparkSession

    def column(self, expression: Any) -> Column:
        """Return an unresolved expression as a column."""
        return Column(self._sql.Column(expression))


class Spark4(Spark3):
    """PySpark 4, whose classic API lies in a package of its own."""

    @property
    def dataset(self) -> Any:
        """The class whose ``ofRows`` makes a DataFrame of a plan."""
        return self._sql.classic.Dataset

    @property
    def session(self) -> Any:
        """The class of sessions."""
        return self._sql.classic.SparkSession

    def column(self, expression: Any) -> Column:
        """Return an unresolved expression as a column."""
        return Column(self._sql.classic.ExpressionUtils.column(expression))


def line_of(session: SparkSession) -> Spark3:
    """Return what the session's Spark does in its own way."""
    return _line_of(gateway(session))


def _line_of(packages: Any) -> Spark3:
    return Spark3(packages) if pyspark.__version__.startswith("3.") else Spark4(packages)


def gateway(session: SparkSession) -> Any:
    """Return the view of Java's packages."""
    return session._jvm


def java_gateway(session: SparkSession) -> Any:
    """Return the connection to the Java of a session."""
    return session.sparkContext._gateway


def java_context(session: SparkSession) -> Any:
    """Return the Java object of a session's context."""
    return session.sparkContext._jsc


def java_session(session: SparkSession) -> Any:
    """Return a session's Java object."""
    return session._jsparkSession


_CLASSES = (
    "PythonRDD",
    "PythonUtils",
    "PythonSQLUtils",
    "SerDeUtil",
    "SimplePythonFunction",
    "functions",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.classic.SparkSession$",
    "org.apache.spark.sql.catalyst.trees.PySparkCurrentOrigin",
    "org.apache.spark.sql.execution.python.UserDefinedPythonFunction",
)


# Under these names a process that attaches to a Java of another one finds the context, and leaves the session that it makes.
CONTEXT, KEPT, ROOT = "context", "kept", "root"
_CATALOG, _WAREHOUSE = "spark.sql.catalogImplementation", "spark.sql.warehouse.dir"


def attached_context(door: Any) -> SparkContext:
    """Return the context of a Java that another process has started.

    Args:
        door: The connection to it; its entry point is a map with the context.
    """
    java = door.entry_point.get(CONTEXT)
    return SparkContext(gateway=door, jsc=java, conf=SparkConf(_jvm=door.jvm, _jconf=java.sc().conf()))


def root_session(context: SparkContext, conf: Mapping[str, str]) -> SparkSession:
    """Return a session with a catalog, global views and static SQL settings of its own, in a Java of several processes.

    With a Hive metastore, which all share anyway, the catalog is kept: a local one is opened once by a Java.
    """
    door: Any = context._gateway
    classes = _line_of(door.jvm).session
    board, default = door.entry_point, classes.getDefaultSession()
    if conf.get(_CATALOG) == "hive":
        kept, place = board.get(KEPT), conf.get(_WAREHOUSE, "")
        if kept.get(place) is None:
            kept.put(place, classes(context._jsc.sc(), dict(conf)))
        java = kept.get(place).newSession()
    else:
        java = classes(context._jsc.sc(), dict(conf))
        board.put(ROOT, java)
    session = SparkSession(context, java)
    if default.isDefined():  # a thread of others that has no session looks there
        classes.setDefaultSession(default.get())
    return session


def make_active(session: SparkSession) -> None:
    """Have what this thread does in Java without naming a session follow this one's settings."""
    line_of(session).session.setActiveSession(java_session(session))


class Door:
    """A way for another process into a Java: a port of the loopback interface and a secret, until it is closed.

    Args:
        packages: Java's packages, as the process has them that started it.
        context: The Java object of the SparkContext.
        kept: A map of Java, the same for all doors of it.
    """

    def __init__(self, packages: Any, context: Any, kept: Any) -> None:
        self._packages, self._context = packages, context
        self._board = packages.java.util.HashMap()
        self._board.put(CONTEXT, context)
        self._board.put(KEPT, kept)
        self.secret = secrets.token_hex(32)
        made = packages.py4j.ClientServer.ClientServerBuilder(self._board).authToken(self.secret)
        address = packages.java.net.InetAddress.getLoopbackAddress()
        self._server: Any = made.javaPort(0).javaAddress(address).build()
        self._server.startServer(True)
        self.port = int(self._server.getJavaServer().getListeningPort())

    def close(self, group: str) -> None:
        """Let no process in any more, and forget what the other process has made.

        Args:
            group: How the names of its groups of Spark jobs begin; those that run are cancelled.
        """
        self._server.shutdown()
        scala, tracker = self._context.sc(), self._context.statusTracker()
        for job in tracker.getActiveJobIds():
            with suppress(Py4JError):  # it has just ended
                name = scala.statusStore().job(job).jobGroup()
                if name.isDefined() and str(name.get()).startswith(group):
                    scala.cancelJobGroup(name.get())
        root = self._board.get(ROOT)
        if root is None:
            return
        listener = root.sharedState().statusStore().listener()
        if listener.isDefined():
            scala.listenerBus().removeListener(listener.get())
        classes = _line_of(self._packages).session
        default = classes.getDefaultSession()
        if default.isDefined() and default.get().equals(root):
            classes.clearDefaultSession()


def is_classic(session: SparkSession) -> bool:
    """Whether a session has Java in this process, as one of Spark Connect has not."""
    return hasattr(session, "_jsparkSession")


def is_stopped(context: SparkContext) -> bool:
    """Whether a context was stopped from Python."""
    return context._jsc is None


def is_running() -> bool:
    """Whether this process has a Spark whose Java lives."""
    context = SparkContext._active_spark_context
    try:
        return context is not None and not is_stopped(context) and not is_stopped_in_java(context)
    except JVM_ERRORS:
        return False
    except ConnectionError:
        return False


def is_stopped_in_java(context: SparkContext) -> bool:
    """Whether a context was stopped in Java; raises `JVM_ERRORS` or ConnectionError when Java has ended."""
    java: Any = context._jsc
    return bool(java.sc().isStopped())


def java_version(session: SparkSession) -> str:
    """Return the version of the Java that a session runs on."""
    return str(gateway(session).System.getProperty("java.version"))


def forget_java() -> None:
    """Take away what PySpark keeps of its Java, so that the next session starts another."""
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def keep_classes(context: SparkContext) -> None:
    """Keep the Java classes that PySpark needs for each statement and column, so that they are looked up once a process.

    Python looks them up by name each time, and Java searches for a short name under each of a dozen packages in each of
    some 250 jars: a tenth of what the driver's Java does in a dbt project of small models.
    """
    view: Any = context._jvm
    for name in _CLASSES:
        found = getattr(view, name)
        # another PySpark may have no such class: then the name is that of a package
        if isinstance(found, JavaClass):
            setattr(view, name, found)


def cloned(session: SparkSession) -> SparkSession:
    """Return a copy of a session: it begins with the same settings and current schema, and shares tables and views."""
    return session_of(session, java_session(session).cloneSession())


def session_of(session: SparkSession, java: Any) -> SparkSession:
    """Return a session of Java, in which ``session`` is another one, as PySpark's."""
    to_frame = RDD.toDF
    try:
        return type(session)(session.sparkContext, java)
    finally:
        RDD.toDF = to_frame  # type: ignore[method-assign]  # PySpark ties it to the session that was made last


def session_id(session: SparkSession) -> str:
    """Return the id of a session."""
    return str(java_session(session).sessionUUID())


def own_settings(session: SparkSession) -> set[str]:
    """Return the names of the settings that a session has of its own or of its context."""
    names = java_session(session).sessionState().conf().getAllConfs().keys()
    return set(str(names.mkString("\n")).split("\n"))

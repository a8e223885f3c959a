"""Java's classes that PySpark asks for by name again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext

_NAMES = (
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


def know_classes(context: SparkContext) -> None:
    """Keep the classes that PySpark needs for each statement and column, so that they are looked up once a process.

    Python asks Java for them by name each time, and Java looks for a short name under each of a dozen packages in each of
    some 250 jars: a tenth of what the driver's Java does in a dbt project of small models.
    """
    from py4j.java_gateway import JavaClass

    view: Any = context._jvm
    for name in _NAMES:
        found = getattr(view, name)
        # another PySpark may have no such class: then the name is that of a package
        if isinstance(found, JavaClass):
            setattr(view, name, found)

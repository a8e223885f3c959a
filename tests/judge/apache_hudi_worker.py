"""The process that runs Apache Hudi: one JSON request a line on stdin, one JSON answer a line on stdout.

Started by ``apache_hudi.py`` with the Python that holds PySpark 3.5; arguments: the bundle jar, a folder
of its own, options of Java, and the folder of a Hive metastore (Derby) or nothing.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType
from rows import plain, plain_map


def start(jar: str, folder: str, java: str, metastore: str) -> SparkSession:
    """Start the session as Hudi's documentation asks for it, with more options for its Java."""
    builder = SparkSession.builder.master("local[2]").appName("apache-hudi")
    for key, value in {
        "spark.jars": jar,
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.codegen.cache.maxEntries": "2000",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": os.path.join(folder, "warehouse"),
        "spark.local.dir": folder,
        "spark.ui.enabled": "false",
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": java,
    }.items():
        builder = builder.config(key, value)
    if pyspark.__version__.startswith("3.5"):
        builder = builder.config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
    else:
        # Hudi before 0.14 lacks the class, and reads a setting that later patch releases of its Spark ask for.
        builder = builder.config("spark.hadoop.spark.sql.legacy.parquet.nanosAsLong", "false")
    if metastore:
        place = f"jdbc:derby:;databaseName={metastore};create=true"
        builder = builder.enableHiveSupport().config("spark.hadoop.javax.jdo.option.ConnectionURL", place)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def answer(spark: SparkSession, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Do what one request asks for and give the rows."""
    if request["action"] == "read":
        frame = spark.read.format("hudi").options(**request["options"]).load(request["path"])
        frame = frame.where(request["where"]) if request["where"] else frame
        return collect(frame.select(*request["columns"]) if request["columns"] else frame)
    if request["action"] == "drain":
        frame = spark.read.format("hudi").options(**request["options"]).load(request["path"])
        frame.write.format("noop").mode("overwrite").save()
        return []
    if request["action"] == "export":
        spark.read.format("hudi").load(request["path"]).write.parquet(request["folder"])
        return []
    if request["action"] == "write":
        writer = spark.read.parquet(request["file"]).write.format("hudi").options(**request["options"])
        writer.mode(request["mode"]).save(request["path"])
        return []
    if request["action"] == "sql":
        for statement in request["statements"][:-1]:
            spark.sql(statement)
        return collect(spark.sql(request["statements"][-1]))
    raise ValueError(f"unknown action {request['action']!r}")


def collect(frame: DataFrame) -> list[dict[str, Any]]:
    """Give the plain rows of a data frame."""
    names = frame.columns
    kinds = [field.dataType for field in frame.schema.fields]
    return [
        {name: convert(value, kind) for name, value, kind in zip(names, row, kinds, strict=True)}
        for row in frame.collect()
    ]


def convert(value: Any, kind: DataType) -> Any:
    """Turn one value into its plain form."""
    if value is None:
        return None
    if isinstance(kind, MapType):
        return plain_map(
            (convert(key, kind.keyType), convert(item, kind.valueType)) for key, item in value.items()
        )
    if isinstance(kind, StructType):
        return {field.name: convert(value[field.name], field.dataType) for field in kind.fields}
    if isinstance(kind, ArrayType):
        return [convert(item, kind.elementType) for item in value]
    return plain(value)


def reason(error: Exception) -> str:
    """Give the last cause of an error of the JVM."""
    causes = [line for line in str(error).splitlines() if line.startswith("Caused by:")]
    return (causes[-1] if causes else str(error))[:2000]


def main() -> None:
    """Serve requests until stdin ends."""
    # Hudi and Spark write to stdout as they like; the answers go to a copy of it that only this function
    # knows.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    spark = start(*sys.argv[1:5])
    for line in sys.stdin:
        try:
            result: dict[str, Any] = {"rows": answer(spark, json.loads(line))}
        except Exception as error:  # the asking side decides what a refusal means
            result = {"error": reason(error)}
        answers.write(json.dumps(result) + "\n")
        answers.flush()
    spark.stop()


if __name__ == "__main__":
    main()

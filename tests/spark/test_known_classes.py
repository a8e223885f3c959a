"""Java's classes are looked up once a process, not for each column and statement."""

from __future__ import annotations

import pytest
from hudi_engine.spark.read.session import prepare_session
from py4j.java_gateway import JVMView
from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def test_columns_and_statements_ask_java_for_no_class_by_name(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_session(spark)
    asked: list[str] = []
    look_up = JVMView.__getattr__
    monkeypatch.setattr(JVMView, "__getattr__", lambda view, name: asked.append(name) or look_up(view, name))
    frame = spark.sql("select 1 as id").where(F.coalesce(F.col("id"), F.lit(0)) > 0).select("id", F.lit(2))
    assert frame.columns == ["id", "2"]
    assert asked == []

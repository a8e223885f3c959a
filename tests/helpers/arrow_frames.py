"""Frames of a few rows that Spark has at hand, in place of such as a Python worker makes for each look at them."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType


def rows_by_arrow(patch: pytest.MonkeyPatch) -> None:
    """Give lists of rows with a schema to Spark as Arrow, where PySpark does so; each job on them takes half the time."""
    try:
        from pyspark.sql.conversion import LocalDataToArrowConversion
    except ImportError:
        return
    plain: Any = SparkSession.createDataFrame

    def by_arrow(session: SparkSession, data: Any, schema: Any = None, *rest: Any, **more: Any) -> Any:
        if isinstance(data, list) and data and isinstance(schema, str | StructType):
            struct = schema if isinstance(schema, StructType) else StructType.fromDDL(schema)
            return plain(session, LocalDataToArrowConversion.convert(data, struct, False), struct)
        return plain(session, data, schema, *rest, **more)

    patch.setattr(SparkSession, "createDataFrame", by_arrow)

"""Many numbers as one literal of Spark.

``functions.lit`` makes an object of each number, and hands each to Java by itself. This is the array as Spark holds it in
rows: bytes in one piece, which go to tasks as they are.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import numpy.typing as npt
from py4j.protocol import Py4JError
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

logger = logging.getLogger(__name__)

_TYPE = '{"type": "array", "elementType": "long", "containsNull": false}'


def long_array(spark: SparkSession, numbers: npt.NDArray[np.int64]) -> Column | None:
    """Return a column of type ``array<bigint>`` that has these elements in every row.

    Returns:
        None where this Spark does not take an array that is made so.
    """
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    sql = jvm.org.apache.spark.sql
    try:
        elements = gateway.new_array(jvm.long, len(numbers))
        jvm.java.nio.ByteBuffer.wrap(numbers.astype(">i8").tobytes()).asLongBuffer().get(elements)
        value = sql.catalyst.expressions.UnsafeArrayData.fromPrimitiveArray(elements)
        literal = sql.catalyst.expressions.Literal(value, spark._jsparkSession.parseDataType(_TYPE))
        columns = sql.classic.ExpressionUtils  # since Spark 4
        made = columns.column(literal) if type(columns).__name__ == "JavaClass" else sql.Column(literal)
    except (Py4JError, TypeError) as error:
        logger.debug("no literal of %d numbers: %s", len(numbers), error)
        return None
    kind: Any = type(F.lit(0))
    column: Column = kind(made)
    return column

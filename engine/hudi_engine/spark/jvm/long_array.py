"""Many numbers as one literal of Spark.

``functions.lit`` makes an object of each number, and hands each to Java by itself. This is the array as Spark holds it in
rows: bytes in one piece, which go to tasks as they are.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, SparkSession

from hudi_engine.spark.jvm.errors import API_ERRORS
from hudi_engine.spark.jvm.session import gateway, java_session, line_of

logger = logging.getLogger(__name__)

_TYPE = '{"type": "array", "elementType": "long", "containsNull": false}'


def long_array(spark: SparkSession, numbers: npt.NDArray[np.int64]) -> Column | None:
    """Return a column of type ``array<bigint>`` that has these elements in every row.

    Returns:
        None where this Spark does not take an array that is made so.
    """
    jvm, java = gateway(spark), java_session(spark)
    sql = jvm.org.apache.spark.sql
    arrays: Any = spark.sparkContext._gateway
    try:
        elements = arrays.new_array(jvm.long, len(numbers))
        jvm.java.nio.ByteBuffer.wrap(numbers.astype(">i8").tobytes()).asLongBuffer().get(elements)
        value = sql.catalyst.expressions.UnsafeArrayData.fromPrimitiveArray(elements)
        literal = sql.catalyst.expressions.Literal(value, java.parseDataType(_TYPE))
        return line_of(spark).column(literal)
    except API_ERRORS as error:
        logger.debug("no literal of %d numbers: %s", len(numbers), error)
        return None

"""Rows of pandas, Polars and Arrow that are no columns of a table are refused with the name of the column."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hudi_engine import SchemaError
from hudi_engine.spark.write.rows.frames import as_frame
from pyspark.sql import SparkSession

LEFT = pa.table({"id": [1, 2], "v": ["a", "b"]})


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        (LEFT.join(pa.table({"id": [1, 2], "v": ["c", "d"]}), "id"), "'v' and 'v'"),
        (LEFT.append_column("V", pa.array(["c", "d"])), "'v' and 'V'"),
        (LEFT.append_column("v", pa.array(["c", "d"])).to_batches()[0], "'v' and 'v'"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "'a' and 'a'"),
        (pd.DataFrame([[1, 2]], columns=["a", "A"]), "'a' and 'A'"),
    ],
)
def test_two_columns_of_one_name_are_refused_before_one_is_lost(
    spark: SparkSession, rows: Any, names: str
) -> None:
    with pytest.raises(SchemaError, match=f"columns {names} have the same name; rename one"):
        as_frame(spark, rows)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([2**70], "too large"),
        ([Decimal("1.1"), Decimal("Infinity")], "cannot be interpreted"),
        (pd.arrays.SparseArray([0, 1]), "Sparse pandas data"),
        (["\ud800"], "surrogates not allowed"),
        ([1, "x"], "Could not convert 'x'"),
    ],
)
def test_values_of_pandas_that_are_no_column_are_told_with_its_name(
    spark: SparkSession, values: Any, said: str
) -> None:
    rows = pd.DataFrame({"id": range(len(values)), "odd one": values})
    with pytest.raises(SchemaError, match=f"column 'odd one': .*{said}.*; replace them, or give"):
        as_frame(spark, rows)


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (pd.DataFrame({"id": [datetime.time(1)]}), "time64"),
        (pa.table({"id": pa.array([1], pa.duration("us"))}), "duration"),
        (pa.table({"id": pa.array([1], pa.decimal256(40, 2))}), "decimal256"),
        (pa.table({"id": [[datetime.time(1)]]}), "time64"),
    ],
)
def test_a_type_that_only_arrow_has_is_refused_with_what_its_writer_can_do(
    spark: SparkSession, rows: Any, kind: str
) -> None:
    said = rf"column 'id.*' has the Arrow type {kind}.*, which has no Spark type; cast it before it is written, such as astype"
    with pytest.raises(SchemaError, match=said):
        as_frame(spark, rows)


def test_bytes_of_one_length_and_decimals_of_every_width_are_those_that_spark_has(
    spark: SparkSession,
) -> None:
    hundred = Decimal("100")
    kinds = {
        "bytes": (b"ab", pa.binary(2), "binary"),
        "many": ([b"ab"], pa.list_(pa.binary(2)), "array<binary>"),
        "wide": (hundred, pa.decimal256(20, 2), "decimal(20,2)"),
        "whole": (hundred, pa.decimal128(3, -2), "decimal(5,0)"),
    }
    rows = pa.table({name: pa.array([value], kind) for name, (value, kind, _) in kinds.items()})
    found = as_frame(spark, rows)
    assert {each.name: each.dataType.simpleString() for each in found.schema.fields} == {
        name: kind for name, (*_, kind) in kinds.items()
    }
    assert [tuple(row) for row in found.collect()] == [(b"ab", [b"ab"], hundred, hundred)]

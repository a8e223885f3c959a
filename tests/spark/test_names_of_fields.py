"""Fields whose names a table cannot have are refused by these names, wherever a column comes from."""

from __future__ import annotations

from typing import Any

import pytest
from hudi_engine.errors import SchemaError
from hudi_engine.spark.schema.spark_types import spark_to_arrow
from pyspark.sql import types as T

from dbt.adapters.hudi.rows.schema_changes import ChangeOfColumns


def test_a_new_column_keeps_the_names_of_its_fields_so_that_the_table_can_refuse_them(spark: Any) -> None:
    odd = T.StructType([T.StructField("a b", T.ShortType()), T.StructField("c`d:int", T.StringType())])
    table = T.StructType([T.StructField("id", T.IntegerType())])

    changed = ChangeOfColumns([T.StructField("extra", T.ArrayType(odd))]).applied(table)

    assert changed["extra"].dataType.elementType.names == ["a b", "c`d:int"]
    assert changed["extra"].dataType.elementType["a b"].dataType == T.IntegerType()
    with pytest.raises(SchemaError, match="'extra.a b' is not allowed; column name 'extra.c`d:int'"):
        spark_to_arrow(changed)

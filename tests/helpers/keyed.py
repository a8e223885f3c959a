"""The table that most tests write to: a key, an ordering field and partitions of texts."""

from __future__ import annotations

from typing import Any

from hudi_engine import HudiTable


def keyed_table(spark: Any, path: Any, table_type: str = "cow", **definition: Any) -> HudiTable:
    """Make table ``t`` with key ``id``, ordering field ``ts`` and partitions by ``dt``, but for what is given."""
    usual = {"name": "t", "record_key": ["id"], "precombine_field": "ts", "partition_by": ["dt"]}
    return HudiTable.create(spark, str(path), table_type=table_type, **{**usual, **definition})

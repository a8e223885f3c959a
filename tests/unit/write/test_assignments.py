"""Columns that an update may not set."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.storage import open_storage
from hudi_engine.spark.write.rows.arguments import check_assignments
from hudi_engine.table.state import TableState

from tests.helpers.handmade import HandmadeTable

PLACE = pa.struct([("id", pa.int32()), ("dt", pa.string()), ("note", pa.string())])
SCHEMA = pa.schema([("s", PLACE), ("p", PLACE), ("other", PLACE), ("id", pa.int32()), ("amount", pa.int64())])


def table(path: Path, **properties: str) -> TableState:
    made = HandmadeTable(path, SCHEMA, (), properties=properties)
    return TableState.load(open_storage(str(made.path)))


def test_a_struct_with_a_field_of_the_key_or_the_partition_is_not_set(tmp_path: Path) -> None:
    state = table(
        tmp_path / "t",
        **{"hoodie.table.recordkey.fields": "S.id", "hoodie.table.partition.fields": "p.dt"},
    )
    for name, field in (("s", "S.id"), ("S", "S.id"), ("p", "p.dt")):
        told = f"column {name!r}, with its field {field!r}, is part of the key or the partition and cannot be set"
        with pytest.raises(ConfigError, match=re.escape(told)):
            check_assignments(state, {name: "null", "amount": "1"})
    check_assignments(state, {"other": "null", "id": "7", "amount": "1"})


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    state = table(tmp_path / "t", **{"hoodie.table.recordkey.fields": "id"})
    with pytest.raises(ConfigError, match="amounts.*; column 'ID' is part of the key"):
        check_assignments(state, {"amounts": "1", "ID": "2"})
    check_assignments(state, {"s": "null"})

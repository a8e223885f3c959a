"""Ordering values of deletes whose column has another type by now."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.format.merge.slice_reader import read_slice
from slices import DATA, DEFAULT, SliceBuilder, config, data_rows, deletes, row, upserts

OF_RELEASE_0 = {
    "hoodie.partition.metafile.use.base.format": "false",
    "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
}


@pytest.mark.parametrize(("properties", "left"), [(OF_RELEASE_0, ["b"]), ({}, ["a", "b"])])
def test_release_0_compares_a_delete_only_by_a_value_of_the_class_of_the_column(
    tmp_path: Path, properties: dict[str, str], left: list[str]
) -> None:
    builder = SliceBuilder(tmp_path).add_log(upserts([row("a", 10), row("b", 10), row("c", 10)], 2))
    of_int, of_long = pa.array([5], pa.int32()), pa.array([5], pa.int64())
    builder.add_log(deletes("a", 3, of_int), deletes("b", 3, of_long), deletes("c", 3))

    found = read_slice(builder.context(config(DEFAULT, **properties)), builder.build())

    assert [each["id"] for each in data_rows(found)] == left


@pytest.mark.parametrize(
    ("kind", "late", "time"),
    [(pa.string(), "5", "9"), (pa.decimal128(30, 15), Decimal(5), Decimal(9))],
    ids=["text", "decimal"],
)
@pytest.mark.parametrize(("properties", "left"), [(OF_RELEASE_0, []), ({}, ["a"])])
def test_release_0_compares_no_deletes_by_text_and_decimals(
    tmp_path: Path, properties: dict[str, str], left: list[str], kind: pa.DataType, late: Any, time: Any
) -> None:
    schema = DATA.set(1, pa.field("ts", kind))
    builder = SliceBuilder(tmp_path, schema).add_log(upserts([{**row("a"), "ts": time}], 2, schema))
    builder.add_log(deletes("a", 3, pa.array([late], kind)))

    found = read_slice(builder.context(config(DEFAULT, **properties)), builder.build())

    assert [each["id"] for each in data_rows(found)] == left

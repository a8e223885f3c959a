"""Kinds of partition fields that stand in their names go beside them at the next write."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.format.config.table_config import PartitionField, TableConfig

import tests.faults.mini_table as mini

IN_NAMES = {"hoodie.table.partition.fields": "part:simple"}
OURS = {"hoodie.table.timeline.timezone": "UTC"}


@pytest.mark.parametrize(("made_by", "names"), [(OURS, "part"), ({}, "part:simple")], ids=["ours", "another"])
def test_the_next_write_puts_them_beside_the_names(
    tmp_path: Path, made_by: dict[str, str], names: str
) -> None:
    storage = mini.create_table(str(tmp_path))
    kind = {"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator"}
    removals = ("hoodie.table.timeline.timezone",)
    TableConfig.load(storage).with_properties(IN_NAMES | kind | made_by, removals).save(storage)

    mini.write(storage, {"a": {"k1": 1}})

    config = TableConfig.load(storage)
    assert config.properties["hoodie.table.partition.fields"] == names
    assert config.partition_fields == (PartitionField("part", "simple"),)
    assert mini.content(storage) == {("a", "k1"): 1}

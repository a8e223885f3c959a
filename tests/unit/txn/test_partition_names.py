"""Kinds of partition fields that another writer keeps in their names."""

from __future__ import annotations

from pathlib import Path

from hudi_engine.format.config.table_config import PartitionField, TableConfig

import tests.faults.mini_table as mini

IN_NAMES = {"hoodie.table.partition.fields": "part:simple"}


def test_kinds_in_names_stay_there(tmp_path: Path) -> None:
    storage = mini.create_table(str(tmp_path))
    kind = {"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator"}
    removals = ("hoodie.table.timeline.timezone",)
    TableConfig.load(storage).with_properties(IN_NAMES | kind, removals).save(storage)

    mini.write(storage, {"a": {"k1": 1}})

    config = TableConfig.load(storage)
    assert config.properties["hoodie.table.partition.fields"] == "part:simple"
    assert config.partition_fields == (PartitionField("part", "simple"),)
    assert mini.content(storage) == {("a", "k1"): 1}

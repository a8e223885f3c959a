"""Keys that a slice holds tell in which form its table has them, wherever they lie."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine.config.table_config import TableConfig
from hudi_engine.filegroup.partition_metadata import ensure_partition_metadata
from hudi_engine.storage import open_storage
from hudi_engine.table_state import TableState
from slices import DATA, SliceBuilder, config, deletes, instant, row, upserts

from tests.unit.merge.test_table_reader import _commit

COMPLEX = {"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator"}


@pytest.mark.parametrize(("key", "named"), [("id:1", True), ("1", False)])
def test_the_form_of_a_lone_complex_key_is_told_by_logs_where_there_is_no_base_file(
    tmp_path: Path, key: str, named: bool
) -> None:
    settings = {"hoodie.timeline.layout.version": "1", "hoodie.table.partition.fields": "dt", **COMPLEX}
    storage = open_storage(str(tmp_path))
    TableConfig.from_properties({**config().properties, **settings}).save(storage)
    builder = SliceBuilder(tmp_path, partition="p")
    ensure_partition_metadata(storage, "p", instant(1))
    builder.add_log(deletes(["id:0"], 1)).add_log(upserts([row(key, 1, 1)], 2))
    _commit(builder, 1, DATA)
    _commit(builder, 2, DATA)
    assert TableState.load(storage).keys_carry_field_name() is named

"""Tables that merge by payload classes which this engine does not know: no service begins anything on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.services import (
    run_clustering,
    run_compaction,
    schedule_clustering,
    schedule_compaction,
)

from tests.unit.services import tables

PACKAGE = "org.apache.hudi.common.model"
CLASSES = [f"{PACKAGE}.HoodieAvroPayload", f"{PACKAGE}.debezium.MySqlDebeziumAvroPayload"]
SERVICES = [schedule_clustering, schedule_compaction, run_clustering, run_compaction]


@pytest.mark.parametrize("service", SERVICES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("payload", CLASSES, ids=["HoodieAvroPayload", "MySqlDebeziumAvroPayload"])
def test_nothing_is_planned_and_nothing_run(
    tmp_path: Path, payload: str, service: Callable[[Storage, Options], object]
) -> None:
    storage = tables.merge_on_read(tmp_path / "t").storage
    TableConfig.load(storage).with_properties({"hoodie.compaction.payload.class": payload}).save(storage)

    def files() -> list[tuple[str, int]]:
        return [(each.path, each.modified_ms) for each in storage.list("", recursive=True) if not each.is_dir]

    before = files()
    with pytest.raises(UnsupportedTableError, match=f"'{payload}'.*which this engine does not know"):
        service(storage, tables.options(compact__inline__max__delta__commits=1))
    assert files() == before

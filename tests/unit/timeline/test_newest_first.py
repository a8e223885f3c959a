"""Who looks back over a table's writes meets those that savepoints hold back among the archived ones."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from hudi_engine.errors import SchemaError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.schema.avro import arrow_to_avro
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.archived import ArchivedTimeline
from hudi_engine.format.timeline.clock import parse_instant_time
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_engine.format.timeline.instant import Instant, State
from hudi_engine.table.state import TableState
from hudi_engine.table.write.stored_rows import check_returning

from dbt.adapters.hudi.spark.catalog_rows import last_write_time

KEY = pa.field("id", pa.string())


def _at(number: int) -> str:
    return f"202401010000{number:02d}000"


def _said(operation: str, *columns: pa.Field, rows: bool = False) -> CommitMetadata:
    stats = {"": [WriteStat("f", "f.parquet")]} if rows else {}
    schema = arrow_to_avro(pa.schema([KEY, *columns]), "t")
    return CommitMetadata(
        operation_type=operation, extra_metadata={"schema": schema}, partition_to_write_stats=stats
    )


@pytest.fixture
def state(
    storage: LocalStorage, timeline_of: Callable[..., Timeline], config_of: Callable[..., TableConfig]
) -> TableState:
    """A savepoint holds the overwrite of minute 1, the upsert of minute 3 was archived, services alone came later."""
    timeline = timeline_of(
        {
            f"{_at(1)}.replacecommit": _said("INSERT_OVERWRITE_TABLE", rows=True).to_json(),
            f"{_at(1)}.savepoint": b"",
            f"{_at(5)}.commit": _said("COMPACT").to_json(),
        }
    )
    archived = Instant(_at(3), "commit", State.COMPLETED, None, "")
    said = {_at(3): _said("UPSERT", pa.field("extra", pa.string()), rows=True)}
    vars(timeline)["archived"] = ArchivedTimeline(storage, config_of(), [archived], said)
    return TableState(storage, config_of(), timeline)


def test_a_column_that_an_archived_write_had_after_a_held_overwrite_comes_back_with_its_type_alone(
    state: TableState,
) -> None:
    before, after = pa.schema([KEY]), pa.schema([KEY, pa.field("extra", pa.int32())])
    with pytest.raises(SchemaError, match="'extra' was dropped as string"):
        check_returning(state, before, after)


def test_an_archived_write_is_newer_than_one_that_a_savepoint_holds(state: TableState) -> None:
    assert last_write_time(state) == parse_instant_time(_at(3), state.config.timeline_zone)

"""Payload classes that Hudi asks twice: among log records, and then against the stored row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.errors import CorruptTableError, UnsupportedTableError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.merge.modes.registry import merge_rule, refuse_to_write
from hudi_engine.format.merge.slice_reader import read_slice, resolve_delta
from hudi_engine.format.schema.meta_fields import with_meta_columns
from slices import SliceBuilder, config, deletes, upserts

PACKAGE = "org.apache.hudi.common.model."
FIRST, AVRO = PACKAGE + "FirstValueAvroPayload", PACKAGE + "HoodieAvroPayload"
MYSQL = PACKAGE + "debezium.MySqlDebeziumAvroPayload"
POSTGRES = PACKAGE + "debezium.PostgresDebeziumAvroPayload"
NOT_SENT = "__debezium_unavailable_value"
RELEASE_0 = {
    "hoodie.partition.metafile.use.base.format": "false",
    "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
}
SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "ts": pa.int64(),
        "_event_seq": pa.string(),
        "_event_lsn": pa.int64(),
        "_change_operation_type": pa.string(),
        "n": pa.int64(),
        "text": pa.string(),
        "raw": pa.binary(),
        "_hoodie_is_deleted": pa.bool_(),
    }
)
TIME = pa.array([5], pa.int64())


def row(key: str, n: int, ts: int = 5, **others: Any) -> dict[str, Any]:
    return {**dict.fromkeys(SCHEMA.names), "id": key, "ts": ts, "n": n, **others}


def log(number: int, *rows: dict[str, Any]) -> bytes:
    return upserts(rows, number, SCHEMA)


def of_release_0(payload: str, **properties: str) -> TableConfig:
    return config(payload, **RELEASE_0, **properties)


@pytest.fixture
def builder(tmp_path: Path) -> SliceBuilder:
    return SliceBuilder(tmp_path, SCHEMA)


def merged(builder: SliceBuilder, settings: TableConfig, column: str = "n") -> dict[str, Any]:
    """A column by key; both ways to read a slice must give the same rows."""
    context, slice_ = builder.context(settings, schema=with_meta_columns(SCHEMA)), builder.build()
    found = read_slice(context, slice_)
    delta = resolve_delta(context, slice_)
    assert len(delta.live) <= found.num_rows
    alone = read_slice(context, slice_, columns=["id", column])
    values = dict(zip(*(found.column(name).to_pylist() for name in ("id", column)), strict=True))
    assert values == dict(zip(*(alone.column(name).to_pylist() for name in ("id", column)), strict=True))
    return values


def test_the_first_of_two_equal_values_stays_in_logs_and_against_the_stored_row(
    builder: SliceBuilder,
) -> None:
    builder.add_base([row("tie", 1), row("newer", 1), row("gone", 1)])
    builder.add_log(log(2, row("tie", 2), row("newer", 2, 6), row("log", 2)))
    builder.add_log(
        log(3, row("newer", 3, 6), row("log", 3)), deletes(["gone"], 3, pa.array([1], pa.int64()))
    )

    assert merged(builder, of_release_0(FIRST)) == {"tie": 1, "newer": 2, "log": 2}


def test_without_ordering_fields_the_first_record_of_the_logs_takes_the_stored_row(
    builder: SliceBuilder,
) -> None:
    builder.add_base([row("a", 1), row("b", 1)])
    builder.add_log(log(2, row("a", 2), row("b", 2))).add_log(log(3, row("a", 3)), deletes(["b"], 3))
    builder.add_log(log(4, row("b", 4)))

    settings = of_release_0(FIRST, hoodie__table__precombine__field="")
    assert merged(builder, settings) == {"a": 2, "b": 4}


def test_hoodie_avro_payload_takes_the_newer_row_and_orders_deletes_alone(builder: SliceBuilder) -> None:
    builder.add_base([row("late", 1, 9), row("stored", 1, 9), row("marked", 1)])
    builder.add_log(log(2, row("late", 2, 1), row("kept", 2, 9), row("marked", 2, _hoodie_is_deleted=True)))
    builder.add_log(deletes(["kept", "late", "stored"], 3, pa.array([5, 5, 5], pa.int64())))
    builder.add_log(log(4, row("late", 4, 0)))

    assert merged(builder, of_release_0(AVRO)) == {"late": 4, "kept": 2, "marked": 2}


def test_hoodie_avro_payload_of_release_1_takes_the_newer_record(builder: SliceBuilder) -> None:
    builder.add_base([row("late", 1, 9), row("marked", 1)])
    builder.add_log(log(2, row("late", 2, 1), row("kept", 2, 9), row("marked", 2, _hoodie_is_deleted=True)))
    builder.add_log(deletes(["kept"], 3, TIME))

    assert merged(builder, config(AVRO)) == {"late": 2}


def test_places_in_the_log_of_mysql_compare_as_numbers_against_the_stored_row(builder: SliceBuilder) -> None:
    stored = {"file": "9.7", "place": "9.7", "older": "10.7", "tie": "9.7", "none": None, "gone": "9.7"}
    newer = {"file": "10.1", "place": "9.20", "older": "9.8", "tie": "9.7", "none": "1.1"}
    builder.add_base([row(key, 1, _event_seq=place) for key, place in stored.items()])
    builder.add_log(log(2, *(row(key, 2, _event_seq=place) for key, place in newer.items())))
    builder.add_log(log(3, row("gone", 3, _event_seq="9.6", _change_operation_type="D")))
    builder.add_log(log(4, row("file", 4, 4, _event_seq="11.1")))  # older by the table's ordering field

    expected = {"file": 2, "place": 2, "older": 1, "tie": 1, "none": 2}
    assert merged(builder, of_release_0(MYSQL)) == expected


@pytest.mark.parametrize(
    ("payload", "said", "words"),
    [
        (MYSQL, {"_event_seq": None}, "no _event_seq"),
        (MYSQL, {"_event_seq": "a.b"}, "_event_seq that is no file and place"),
        (MYSQL, {"_event_seq": "9"}, "_event_seq that is no file and place"),
        (POSTGRES, {"_event_lsn": None}, "no _event_lsn"),
    ],
)
def test_rows_without_a_place_in_the_log_of_their_source_are_refused(
    builder: SliceBuilder, payload: str, said: dict[str, Any], words: str
) -> None:
    builder.add_base([row("a", 1, _event_seq="9.7", _event_lsn=1)]).add_log(log(2, row("a", 2, **said)))

    with pytest.raises(CorruptTableError, match=words):
        merged(builder, of_release_0(payload))


def test_values_that_postgres_did_not_send_are_those_of_the_stored_row(builder: SliceBuilder) -> None:
    builder.add_base(
        [row(key, 1, _event_lsn=7, text=key, raw=b"stored") for key in ("newer", "tie", "older")]
    )
    said = {"text": NOT_SENT, "raw": NOT_SENT.encode()}
    builder.add_log(
        log(2, row("newer", 2, _event_lsn=8, text="lost"), row("new", 2, _event_lsn=8, text="lost"))
    )
    builder.add_log(log(3, *(row(key, 3, _event_lsn=8, **said) for key in ("newer", "new"))))
    builder.add_log(log(4, row("tie", 4, _event_lsn=7, **said), row("older", 4, _event_lsn=6, text="late")))

    settings = of_release_0(POSTGRES)
    assert merged(builder, settings) == {"newer": 3, "tie": 4, "older": 1, "new": 3}
    assert merged(builder, settings, "text") == {
        "newer": "newer",
        "tie": "tie",
        "older": "older",
        "new": NOT_SENT,
    }
    assert merged(builder, settings, "raw")["newer"] == b"stored"


@pytest.mark.parametrize("payload", [FIRST, MYSQL, POSTGRES])
def test_tables_of_release_1_with_other_classes_are_refused_by_name(payload: str) -> None:
    for settings in (config(payload), config(payload, hoodie__table__version="8")):
        with pytest.raises(
            UnsupportedTableError, match=f"{payload}.*only in merge-on-read tables that Hudi 0.x"
        ):
            merge_rule(settings)


@pytest.mark.parametrize("payload", [FIRST, AVRO, MYSQL, POSTGRES])
def test_such_tables_are_not_written(payload: str) -> None:
    with pytest.raises(UnsupportedTableError, match=f"'{payload}'; this engine reads .* not write"):
        refuse_to_write(of_release_0(payload))

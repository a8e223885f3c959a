"""Tables that Apache Hudi writes with payload classes of its own: our engine reads the rows that Hudi reads, and writes none."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine import HudiTable
from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.merge.table_reader import read_table
from hudi_engine.format.storage.factory import open_storage

from tests.judge.apache_hudi import ApacheHudi
from tests.judge.arrow_rows import rows_of_arrow, rows_of_spark
from tests.judge.readers import Judges
from tests.judge.rows import difference, without_meta

PACKAGE = "org.apache.hudi.common.model."
FIRST, AVRO = PACKAGE + "FirstValueAvroPayload", PACKAGE + "HoodieAvroPayload"
MYSQL = PACKAGE + "debezium.MySqlDebeziumAvroPayload"
POSTGRES = PACKAGE + "debezium.PostgresDebeziumAvroPayload"
NOT_SENT = "__debezium_unavailable_value"
VERSION_8 = {
    "hoodie.write.table.version": "8",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.write.record.merge.mode": "CUSTOM",
    "hoodie.metadata.enable": "false",
}
SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "ts": pa.int64(),
        "_event_seq": pa.string(),
        "_event_lsn": pa.int64(),
        "_change_operation_type": pa.string(),
        "step": pa.int64(),
        "text": pa.string(),
        "raw": pa.binary(),
        "nested": pa.struct({"text": pa.string()}),
        "_hoodie_is_deleted": pa.bool_(),
    }
)


def options(payload: str, ordering: str | None) -> dict[str, str]:
    prefix = "hoodie.datasource.write."
    said = {} if ordering is None else {prefix + "precombine.field": ordering}
    return {
        "hoodie.table.name": "judged",
        prefix + "recordkey.field": "id",
        prefix + "table.type": "MERGE_ON_READ",
        prefix + "payload.class": payload,
        "hoodie.compaction.payload.class": payload,
        prefix + "keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.compact.inline": "false",
        "hoodie.parquet.small.file.limit": "0",
        **said,
    }


def row(draw: random.Random, number: int, step: int, deletes: float) -> dict[str, Any]:
    marks = ["c", "u", "D"] if deletes else ["c", "u", None]
    return {
        "id": f"k{number}",
        "ts": draw.choice([1, 5, 9, 10, 11]),
        "_event_seq": f"{draw.choice([2, 9, 10])}.{draw.choice([3, 20, 100])}",
        "_event_lsn": draw.choice([0, 3, 7, 10]),
        "_change_operation_type": "d" if draw.random() < deletes else draw.choice(marks),
        "step": step,
        "text": draw.choice([NOT_SENT, None, f"{step}-{number}"]),
        "raw": draw.choice([NOT_SENT.encode(), None, b"%d" % step]),
        "nested": {"text": draw.choice([NOT_SENT, f"{step}"])},
        "_hoodie_is_deleted": draw.random() < deletes / 2,
    }


def write_all_and_compare(hudi: ApacheHudi, path: Path, said: Mapping[str, str], *, keep_v6: bool) -> None:
    """A base file, then logs of upserts, of rows that delete by marks, and of deletes by key; read after each."""
    draw = random.Random(7)  # noqa: S311 - the same rows each time
    rows = [row(draw, number, 0, 0) for number in range(40)]
    hudi.write(
        path, pa.Table.from_pylist(rows, SCHEMA), said, operation="insert", mode="overwrite", keep_v6=keep_v6
    )
    for step in range(1, 5):
        some = sorted(draw.sample(range(48), 30))
        by_key = step == 3
        rows = [row(draw, number, step, 0 if by_key or step == 1 else 0.15) for number in some]
        batch = pa.Table.from_pylist(rows[:15] if by_key else rows, SCHEMA)
        hudi.write(path, batch, said, operation="delete" if by_key else "upsert", keep_v6=keep_v6)
        ours = rows_of_arrow(read_table(open_storage(str(path))))
        assert difference(ours, hudi.read(path)) == "", f"after write {step}"


@pytest.mark.parametrize(
    ("payload", "ordering"),
    [
        (FIRST, "ts"),
        pytest.param(FIRST, None, marks=pytest.mark.long),
        (AVRO, "ts"),
        (MYSQL, "_event_seq"),
        (POSTGRES, "_event_lsn"),
    ],
)
def test_rows_are_those_of_release_0(
    payload: str, ordering: str | None, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    hudi, path = apache_hudi("0.15.0"), tmp_path / "t"
    write_all_and_compare(hudi, path, options(payload, ordering), keep_v6=True)

    table = HudiTable.open(spark, str(path))
    theirs = without_meta(hudi.read(path))
    assert difference(without_meta(rows_of_spark(table.snapshot())), theirs) == ""
    refused = f"'{payload}'; this engine reads such tables"
    with pytest.raises(UnsupportedTableError, match=refused):
        table.upsert(pa.Table.from_pylist([row(random.Random(1), 1, 9, 0)], SCHEMA))  # noqa: S311
    for act in (table.compact, lambda: table.delete_where("id = 'k1'"), table.cluster):
        with pytest.raises(UnsupportedTableError, match=refused):
            act()
    assert difference(without_meta(hudi.read(path)), theirs) == ""


def test_hoodie_avro_payload_of_version_8(tmp_path: Path, apache_hudi: Judges) -> None:
    said = {**options(AVRO, "ts"), **VERSION_8}
    write_all_and_compare(apache_hudi("1.2.0"), tmp_path / "t", said, keep_v6=False)

"""A table with ``timestamp-millis``, as Flink makes it, continued by this engine: Apache Hudi reads the times that were written."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine import HudiTable

from tests.helpers.handmade import HandmadeTable
from tests.judge.apache_hudi import VERSIONS, ApacheHudi

MILLIS = pa.timestamp("ms", "UTC")
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("ts", MILLIS),
        ("s", pa.struct([("at", MILLIS)])),
        ("l", pa.list_(pa.field("element", MILLIS))),
    ]
)
AT = ["null", {"type": "long", "logicalType": "timestamp-millis"}]
KINDS: dict[str, Any] = {
    "id": ["null", "string"],
    "ts": AT,
    "s": ["null", {"type": "record", "name": "s", "fields": [{"name": "at", "type": AT, "default": None}]}],
    "l": ["null", {"type": "array", "items": AT}],
}
FORMS = {"cow": {}, "avro": {}, "parquet": {"hoodie.logfile.data.block.format": "parquet"}}


class ForeignTable(HandmadeTable):
    """A table whose schema text is given, byte by byte."""

    def avro_text(self) -> str:
        fields = [{"name": name, "type": kind, "default": None} for name, kind in KINDS.items()]
        return json.dumps({"type": "record", "name": "handmade", "namespace": "flink", "fields": fields})


def a_row(key: str, number: int) -> dict[str, Any]:
    at = dt.datetime(2024, 1, 15) + dt.timedelta(milliseconds=number)
    return {"id": key, "ts": at, "s": {"at": at}, "l": [at, None]}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_every_release_reads_the_times_that_were_written(
    form: str, spark: Any, tmp_path: Path, apache_hudi: Callable[[str], ApacheHudi]
) -> None:
    foreign = ForeignTable(
        tmp_path / "t",
        SCHEMA,
        merge_on_read=form != "cow",
        properties={"hoodie.table.precombine.field": "ts"},
    )
    file_id = "11111111-1111-4111-8111-111111111111-0"
    first = [a_row("a", 1), a_row("b", 1), a_row("c", 1)]
    foreign.commit({"": {file_id: pa.Table.from_pylist(first, schema=SCHEMA)}})
    table = HudiTable.open(spark, str(foreign.path))

    table.upsert(pa.Table.from_pylist([a_row("a", 5), a_row("d", 6)], schema=SCHEMA), options=FORMS[form])
    table.delete(spark.sql("select 'c' id"))

    wanted = [a_row("a", 5), a_row("b", 1), a_row("d", 6)]
    for version in VERSIONS:
        rows = apache_hudi(version).read(foreign.path, columns=SCHEMA.names)
        found = sorted((row["id"], row["ts"], row["s"]["at"], row["l"][0]) for row in rows)
        assert found == [(row["id"], *[row["ts"].isoformat(timespec="microseconds")] * 3) for row in wanted]

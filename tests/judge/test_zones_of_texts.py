"""Texts of times that say their offset: Apache Hudi and our engine place a row in the same partition, whoever made the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine import HudiTable

from tests.judge.apache_hudi import VERSIONS, ApacheHudi
from tests.judge.readers import Judges

TIMES = {
    "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
    "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd'T'HH:mm:ssZ",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd/HH",
}
SAID = {
    "hoodie.table.name": "judged",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "id",
    "hoodie.datasource.write.partitionpath.field": "at",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    **TIMES,
}
ROWS = pa.table({"id": [1, 2], "at": ["2023-04-01T23:01:00+0530", "2023-04-01T23:01:00+0000"]})


def places(hudi: ApacheHudi, path: Path) -> list[tuple[int, str]]:
    return sorted((row["id"], row["_hoodie_partition_path"]) for row in hudi.read(path))


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_meet_those_of_their_key(version: str, spark: Any, tmp_path: Path, apache_hudi: Judges) -> None:
    hudi, theirs, ours = apache_hudi(version), tmp_path / "theirs", tmp_path / "ours"
    hudi.write(theirs, ROWS, SAID, operation="insert", mode="overwrite")
    result = HudiTable.open(spark, str(theirs)).upsert(
        ROWS, options={**TIMES, "hoodie.keygen.timebased.input.timezone": ""}
    )
    assert result.rows_updated == 2
    assert places(hudi, theirs) == [(1, "2023/04/01/23"), (2, "2023/04/01/23")]

    made = HudiTable.create(
        spark, str(ours), name="judged", record_key=["id"], precombine_field="id", partition_by=["at"],
        options={**TIMES, "hoodie.datasource.write.keygenerator.type": "TIMESTAMP"},
    )  # fmt: skip
    made.upsert(ROWS)
    hudi.upsert(ours, ROWS, SAID)
    assert places(hudi, ours) == [(1, "2023/04/01/17"), (2, "2023/04/01/23")]

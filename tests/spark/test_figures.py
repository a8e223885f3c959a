"""What a write says of itself: figures and seconds in its result and its commit, metrics, the callback's check."""

from __future__ import annotations

import json

import pytest
from hudi_engine import HudiTable
from hudi_engine.errors import ConfigError
from hudi_engine.format.telemetry.figures import FIGURES
from hudi_engine.table.state import TableState


def test_a_write_tells_what_it_cost(spark, tmp_path):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
    table.upsert(spark.range(1000).selectExpr("id", "id as v"))
    options = {
        "hoodie.metrics.on": "true",
        "hoodie.engine.metrics.textfile.dir": str(tmp_path / "metrics"),
        "_dbt_invocation_id": "run-1",
    }
    result = table.upsert(spark.range(10).selectExpr("id", "-id as v"), options=options)

    told = TableState.load(table.storage).timeline
    extra = told.commit_metadata(told.completed_writes[-1]).extra_metadata
    assert (result.figures.rows_in, result.figures.rows_shuffled) == (10, 0)
    assert result.figures.bytes_rewritten == result.bytes_written
    for write, kind in zip(told.completed_writes, ("totalCreateTime", "totalUpsertTime"), strict=True):
        for _, stat in told.commit_metadata(write).write_stats():
            assert stat.runtime_stats[kind] > 0
    assert result.figures.bytes_changed == result.bytes_written * 10 // 1000
    assert {"prepare", "begin", "write", "commit", "publish", "services"} <= result.seconds.keys()
    assert json.loads(extra[FIGURES])["rowsIn"] == 10 and extra["_dbt_invocation_id"] == "run-1"
    assert (
        f"\nt_commit_totalBytesWritten {result.bytes_written}\n" in (tmp_path / "metrics/t.prom").read_text()
    )


def test_a_callback_without_an_address_is_refused_before_the_write(spark, tmp_path):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
    with pytest.raises(ConfigError, match="is no address of HTTP"):
        table.upsert(spark.range(3), options={"hoodie.write.commit.callback.on": "true"})
    assert table.timeline() == []

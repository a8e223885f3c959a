"""Batches of streams: one that is written again commits nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hudi_engine import ConfigError, ConsumedMeanwhileError, HudiTable, WriteConflictError
from hudi_engine.format.config.own_keys import BATCHES
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.metadata_conflicts import latest_batches
from hudi_engine.table.write import pipeline

pytestmark = pytest.mark.sampled

IDENTIFIER = "hoodie.datasource.write.streaming.checkpoint.identifier"
OTHER = {IDENTIFIER: "other"}
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "change-streams.md"


@pytest.fixture(params=["6", "9"])
def table(spark, tmp_path, request):
    return HudiTable.create(
        spark,
        str(tmp_path / "t"),
        name="t",
        record_key=["id"],
        table_type="mor",
        options={"hoodie.write.table.version": request.param},
    )


def rows(spark, *ids):
    return spark.createDataFrame([(each, "v") for each in ids], "id int, v string")


def ids(table):
    return sorted(row.id for row in table.snapshot().collect())


def batches(table):
    return latest_batches(TableState.load(table.storage).timeline)


@pytest.mark.parametrize("way", ["insert", "upsert", "bulk_insert"])
def test_a_replayed_batch_commits_nothing(spark, table, way):
    write = getattr(table, way)
    assert write(rows(spark, 1), batch_id=4).instant
    for batch_id in (4, 3):
        assert write(rows(spark, 1), batch_id=batch_id).instant is None
    assert len(table.commits()) == 1 and ids(table) == [1]
    assert write(rows(spark, 2), batch_id=5).instant
    assert write(rows(spark, 3), batch_id=0, options=OTHER).instant
    assert ids(table) == [1, 2, 3]
    assert batches(table) == {"default_single_writer": "5", "other": "0"}
    assert table.delete(rows(spark, 1), batch_id=0, options=OTHER).instant is None


def test_later_commits_carry_batches_on(spark, table):
    table.upsert(rows(spark, 1), batch_id=7)
    table.upsert(rows(spark, 1, 2))
    table.upsert(rows(spark, 1))
    assert table.compact().instant
    newest = table.commits(1)[0]
    assert json.loads(newest.extra[BATCHES]) == {"default_single_writer": "7"}
    assert table.upsert(rows(spark, 3), batch_id=7).instant is None
    assert ids(table) == [1, 2]


def test_a_rollback_takes_its_batch_out(spark, table):
    table.insert(rows(spark, 1), batch_id=1)
    table.rollback(table.insert(rows(spark, 2), batch_id=2).instant)
    assert batches(table) == {"default_single_writer": "1"}
    assert table.insert(rows(spark, 2), batch_id=2).instant
    assert ids(table) == [1, 2]


@pytest.mark.parametrize("batch_id", [-1, True, "7", 1.0])
def test_what_is_no_batch_is_refused(spark, table, batch_id):
    with pytest.raises(ConfigError, match="batch_id is .*; legal values: whole numbers from 0 on"):
        table.insert(rows(spark, 1), batch_id=batch_id)


@pytest.mark.parametrize(
    ("batch_id", "options"), [(1, {}), (5, OTHER)], ids=["the same", "of another stream"]
)
def test_two_writers_of_a_batch_write_it_once(spark, table, monkeypatch, batch_id, options):
    inspect, others = (
        pipeline.inspect,
        [lambda: table.insert(rows(spark, 2), batch_id=batch_id, options=options)],
    )

    def overtaken(*args):
        if others:
            others.pop()()
        inspect(*args)

    monkeypatch.setattr(pipeline, "inspect", overtaken)
    by_completion = table.config.table_version.has_completion_times
    if options and by_completion:
        table.insert(rows(spark, 1), batch_id=1)
        assert batches(table) == {"default_single_writer": "1", "other": "5"}
        return
    retries = {"hoodie.write.num.retries.on.conflict.failures": "2" if not options else "0"}
    message = "has committed batch 1 of" if not options else "it notes its batch"
    with pytest.raises(ConsumedMeanwhileError if not options else WriteConflictError, match=message):
        table.insert(rows(spark, 1), batch_id=1, options=retries)
    assert ids(table) == [2]
    assert (table.insert(rows(spark, 1), batch_id=1).instant is None) == (not options)


def test_the_stream_of_the_guide_writes_each_batch_once(spark, tmp_path):
    path, source, checkpoint = (str(tmp_path / each) for each in ("t", "in", "checkpoint"))
    HudiTable.create(spark, path, name="t", schema="id bigint")
    spark.range(3).write.parquet(source)
    (code,) = re.findall(r"```python\n# a stream into a table\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)

    def run():
        stream = spark.readStream.schema("id bigint").parquet(source)
        names = {"HudiTable": HudiTable, "spark": spark, "path": path, "checkpoint": checkpoint}
        exec(code, {**names, "stream": stream})  # noqa: S102

    run()
    # as if the process had died between the commit of the table and that of the stream
    for each in Path(checkpoint, "commits").iterdir():
        each.unlink()
    run()
    spark.range(3, 5).write.mode("append").parquet(source)
    run()
    table = HudiTable.open(spark, path)
    assert sorted(row.id for row in table.snapshot().collect()) == [0, 1, 2, 3, 4]
    assert batches(table) == {"orders": "1"}


@pytest.mark.parametrize("mode", ["net", "all", "latest"])
def test_changes_may_include_the_commit_they_start_with(spark, table, mode):
    instants = [table.upsert(rows(spark, number)).instant for number in (1, 2, 3)]
    for number, instant in enumerate(instants):
        found = table.changes(instant, mode=mode, include_start=True)
        assert sorted(row.id for row in found.collect()) == [1, 2, 3][number:]
        alone = table.changes(instant, instant, mode=mode, include_start=True)
        assert [row.id for row in alone.collect()] == [number + 1]
    assert table.changes(instants[2], mode=mode).count() == 0
    assert table.changes("earliest", mode=mode, include_start=True).count() == 3

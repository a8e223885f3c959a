"""The changes of a table as a source of Spark's own, in batches and streams."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from hudi_engine import register_change_source
from hudi_engine.errors import HistoryGapError, UnsupportedTableError
from hudi_engine.format.storage import use_settings
from hudi_engine.spark.changes.source import ChangeSource
from hudi_engine.table.changes.checkpoint import WindowLimits

from tests.helpers.keyed import keyed_table

COLUMNS = "id int, ts bigint, name string"

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "change-streams.md"


@pytest.fixture
def source(spark):
    if spark.version.startswith("3."):
        with pytest.raises(UnsupportedTableError, match="needs Spark 4"):
            register_change_source(spark)
        pytest.skip("this Spark has no such sources, and it was said")
    register_change_source(spark)


def test_the_processes_that_plan_a_read_know_how_to_get_to_a_table(spark, source, s3_server, monkeypatch):
    place = f"{s3_server.new_bucket()}/lake/t"
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    login = {"access_key_id": "tester", "secret_access_key": "not-a-secret"}
    use_settings(place, {"region": "us-east-1", "endpoint": s3_server.endpoint, **login})
    table = make(spark, place)
    first = upsert(spark, table, (1, 1, "one"), (2, 1, "two"))
    register_change_source(spark)
    frame = spark.read.format("hudi_changes").load(place)
    assert told(frame) == [("insert", 1, "one", first), ("insert", 2, "two", first)]
    assert "not-a-secret" not in frame._jdf.queryExecution().toString()


def make(spark, path):
    return keyed_table(
        spark, path, partition_by=(), schema=COLUMNS, options={"hoodie.clean.automatic": "false"}
    )


def upsert(spark, table, *rows):
    return table.upsert(spark.createDataFrame(list(rows), COLUMNS)).instant


def told(frame):
    return sorted(
        (row["_change_type"], row["id"], row["name"], row["_commit_time"]) for row in frame.collect()
    )


def test_a_batch_tells_what_changes_tells(spark, tmp_path, source):
    table = make(spark, tmp_path / "t")
    first = upsert(spark, table, (1, 1, "one"), (2, 1, "two"))
    second = upsert(spark, table, (1, 2, "ONE"))
    table.delete(spark.createDataFrame([(2, 2, "two")], COLUMNS))
    reader = spark.read.format("hudi_changes")
    for mode in ("net", "all", "latest"):
        found = told(reader.option("mode", mode).option("start", first).load(table.path))
        assert found == told(table.changes(first, mode=mode))
    assert told(spark.read.format("hudi_changes").load(table.path)) == told(table.changes())
    ended = spark.read.format("hudi_changes").option("start", first).option("end", second).load(table.path)
    assert told(ended) == [("update_after", 1, "ONE", second)]


def test_a_batch_without_changes_has_no_rows(spark, tmp_path, source):
    table = make(spark, tmp_path / "t")
    commits = [upsert(spark, table, (1, number, f"v{number}")) for number in range(3)]
    for options in (
        {"end": "2020-01-01"},
        {"start": "latest"},
        {"start": commits[2]},
        {"start": commits[1], "end": commits[1]},
    ):
        assert told(spark.read.format("hudi_changes").options(**options).load(table.path)) == []
    backwards = spark.read.format("hudi_changes").options(start=commits[1], end=commits[0])
    with pytest.raises(Exception, match="before they start"):
        backwards.load(table.path).collect()


def test_wrong_options_are_told_together(spark, tmp_path, source):
    table = make(spark, tmp_path / "t")
    reader = (
        spark.read.format("hudi_changes").option("mode", "some").option("max_rows", "0").option("limit", "1")
    )
    with pytest.raises(Exception, match="'limit' is none; legal.*mode is 'some'.*max_rows is '0'"):
        reader.load(table.path).collect()


@pytest.mark.parametrize("way", ["rollback", "restore"])
def test_a_reader_at_a_commit_that_was_taken_back_is_told_so(spark, tmp_path, way):
    table = make(spark, tmp_path / "t")
    commits = [upsert(spark, table, (1, number, f"v{number}")) for number in range(3)]
    if way == "restore":
        table.restore(commits[0])
    else:
        table.rollback(commits[2])
    source = ChangeSource({"path": table.path, "start": commits[2]})
    for ask in (
        source.first,
        lambda: source.after(commits[2], WindowLimits()),
        lambda: table.next_window(commits[2]),
        lambda: table.changes(commits[2]),
    ):
        with pytest.raises(HistoryGapError, match=f"was taken back by {way}"):
            ask()
    assert table.next_window(commits[0]).commits == (0 if way == "restore" else 1)


def test_a_stream_takes_each_commit_once_over_restarts_within_its_limits(spark, tmp_path, source):
    table = make(spark, tmp_path / "t")
    batches: list[list[tuple[object, ...]]] = []
    numbers: list[int] = []

    def take(batch, number):
        batches.append(told(batch))
        numbers.append(number)

    def run():
        frame = spark.readStream.format("hudi_changes").option("max_commits", "1").load(table.path)
        batches.clear()
        query = (
            frame.writeStream.foreachBatch(take)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)
        assert not query.isActive
        return [[row[:3] for row in batch] for batch in batches if batch]

    upsert(spark, table, (1, 1, "one"))
    upsert(spark, table, (2, 1, "two"))
    assert run() == [[("insert", 1, "one")], [("insert", 2, "two")]]
    upsert(spark, table, (1, 2, "ONE"))
    table.delete(spark.createDataFrame([(2, 2, "two")], COLUMNS))
    assert run() == [[("update_after", 1, "ONE")], [("delete", 2, "two")]]
    assert run() == []
    # the last batch is told again when Spark lost the note that it was done
    for note in sorted((tmp_path / "checkpoint" / "commits").glob("*[0-9]"))[-1:]:
        note.unlink()
        shutil.rmtree(note.with_name(f".{note.name}.crc"), ignore_errors=True)
        note.with_name(f".{note.name}.crc").unlink(missing_ok=True)
    assert run() == [[("delete", 2, "two")]]
    assert numbers[-1] == numbers[-2], "under its old number"


@pytest.mark.parametrize("done", [0, 1], ids=["in its first batch", "later"])
def test_a_stream_whose_batch_was_cleaned_says_how_to_begin_anew(spark, tmp_path, source, done):
    table = make(spark, tmp_path / "t")
    for number in range(3):
        upsert(spark, table, (1, number, f"v{number}"))
    fails = {done}

    def take(batch, number):
        batch.collect()
        if number in fails:
            raise RuntimeError("the follower failed")

    def run(place, **options):
        frame = spark.readStream.format("hudi_changes").options(max_commits="1", **options).load(table.path)
        query = (
            frame.writeStream.foreachBatch(take)
            .option("checkpointLocation", str(tmp_path / place))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)

    with pytest.raises(Exception, match="the follower failed"):
        run("checkpoint")
    for number in range(3, 9):
        upsert(spark, table, (1, number, f"v{number}"))
    table.clean(retain_commits=1)
    fails.clear()
    for _ in range(2):
        with pytest.raises(
            Exception, match="HistoryGapError: the stream cannot tell its batch"
        ) as told_error:
            run("checkpoint")
        said = str(told_error.value)
        assert "another checkpointLocation" in said and "register_consumer" in said
        assert "on_gap" not in said and "as_of" not in said
    run("another", start="latest")
    run("all", start="earliest")


def test_the_guides_follower_keeps_a_copy_up_to_date(spark, tmp_path, source):
    table, copy = make(spark, tmp_path / "t"), make(spark, tmp_path / "copy")
    (code,) = re.findall(r"```python\n(# keeps a copy.*?)```", GUIDE.read_text(), re.DOTALL)
    code = code.replace('processingTime="1 minute"', "availableNow=True")
    names = {"spark": spark, "source": table.path, "copy": copy, "checkpoint": str(tmp_path / "checkpoint")}
    for rows in ([(1, 1, "one"), (2, 1, "two")], [(1, 2, "ONE"), (3, 2, "three")]):
        upsert(spark, table, *rows)
        exec(code, names)  # noqa: S102
        assert names["query"].awaitTermination(120)
    table.delete(spark.createDataFrame([(2, 3, "two")], COLUMNS))
    exec(code, names)  # noqa: S102
    assert names["query"].awaitTermination(120)
    wanted = sorted((row["id"], row["name"]) for row in table.snapshot().collect())
    assert (
        sorted((row["id"], row["name"]) for row in copy.snapshot().collect())
        == wanted
        == [(1, "ONE"), (3, "three")]
    )

"""Tables whose columns ALTER TABLE renamed by schema on read are written to without losing the ids of their columns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hudi_engine import HudiTable, SchemaError, WriteConflictError, rebuild_table
from hudi_engine.format.schema.avro import arrow_to_avro
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.schema_commits import LATEST_SCHEMA
from hudi_engine.spark.catalog import TableName, register_table
from hudi_engine.table.txn.transaction import WriteTransaction

from tests.spark.orders import FIRST, create, frame

pytestmark = pytest.mark.sampled

RENAMED = "id int, ts bigint, dt string, title string"
TYPES = {"id": "int", "ts": "long", "dt": "string"}


def _version(instant, *names):
    fields = [
        {"id": number, "name": name, "optional": True, "type": TYPES.get(name, "string")}
        for number, name in enumerate(names)
    ]
    return {"max_column_id": 3, "version_id": int(instant), "type": "record", "fields": fields}


def rename(table, old="name", new="title"):
    """Rename a column as Apache Hudi's ALTER TABLE does; gives what later commits must carry."""
    folder = Path(table.path) / ".hoodie"
    newest = max(file.name for file in folder.iterdir() if file.name[:1].isdigit())
    instant = str(int(newest.partition(".")[0]) + 1)
    names = table.snapshot().select("id", "ts", "dt", old).columns
    (folder / ".schema").mkdir(exist_ok=True)
    known = max((folder / ".schema").glob("*.schemacommit"), default=None)
    before = [_version(0, *names)] if known is None else json.loads(known.read_text())["schemas"]
    versions = [_version(instant, *names[:3], new), *before]
    texts = [json.dumps(each, separators=(",", ":")) for each in versions]
    (folder / ".schema" / f"{instant}.schemacommit").write_text('{"schemas":[' + ",".join(texts) + "]}")
    schema = table.snapshot().select("id", "ts", "dt", old).withColumnRenamed(old, new).toArrow().schema
    action = "commit" if _kind(table) == "COPY_ON_WRITE" else "deltacommit"
    for state in (f".{action}.requested", ".inflight" if action == "commit" else f".{action}.inflight"):
        (folder / f"{instant}{state}").write_text("")
    told = {"schema": json.dumps(arrow_to_avro(schema, "t")), LATEST_SCHEMA: texts[0]}
    body = CommitMetadata(extra_metadata=told, operation_type="ALTER_SCHEMA").to_json()
    (folder / f"{instant}.{action}").write_bytes(body)
    return texts[0]


def _kind(table):
    text = (Path(table.path) / ".hoodie" / "hoodie.properties").read_text()
    return next(line for line in text.splitlines() if line.startswith("hoodie.table.type=")).partition("=")[2]


def _newest(table):
    """Instant of the newest write and what it carries."""
    folder = Path(table.path) / ".hoodie"
    ends = (".commit", ".deltacommit", ".replacecommit")
    file = max(each for each in folder.iterdir() if each.name.endswith(ends))
    return file.name.partition(".")[0], CommitMetadata.from_bytes(file.read_bytes()).extra_metadata


def _history(table, instant):
    return (Path(table.path) / ".hoodie" / ".schema" / f"{instant}.schemacommit").read_text()


def _titles(table):
    return dict(table.snapshot().select("id", "title").collect())


def _batch(spark, *rows):
    return spark.createDataFrame([tuple(row) for row in rows], RENAMED)


WRITES = {
    "upsert": lambda table, spark: table.upsert(_batch(spark, (4, 20, "b", "four"))),
    "delete": lambda table, spark: table.delete_where("id = 3"),
    "overwrite": lambda table, spark: table.insert_overwrite_table(_batch(spark, (4, 20, "b", "four"))),
    "delete_partitions": lambda table, spark: table.delete_partitions(["b"]),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_every_write_carries_the_column_ids_and_passes_their_history_on(spark, tmp_path, write):
    table = create(spark, tmp_path, partition_by=["dt"])
    table.upsert(frame(spark, *FIRST))
    carried = rename(table)
    altered, _ = _newest(table)
    write(table, spark)
    instant, told = _newest(table)
    assert instant > altered and told[LATEST_SCHEMA] == carried
    assert _history(table, instant) == _history(table, altered)
    assert "three" not in _titles(table).values() or write is WRITES["upsert"]
    if write is not WRITES["overwrite"]:
        assert _titles(table)[1] == "one"


def test_ids_that_an_earlier_commit_lost_are_taken_from_the_history(spark, tmp_path):
    table = create(spark, tmp_path)
    table.upsert(frame(spark, *FIRST))
    carried = rename(table)
    instant, told = _newest(table)
    body = CommitMetadata(extra_metadata={"schema": told["schema"]}, operation_type="UPSERT").to_json()
    (Path(table.path) / ".hoodie" / f"{instant}.commit").write_bytes(body)
    table.upsert(_batch(spark, (4, 20, "b", "four")))
    assert _newest(table)[1][LATEST_SCHEMA] == carried


@pytest.mark.parametrize(
    "change",
    [
        lambda table, spark: table.alter_schema(RENAMED + ", price double"),
        lambda table, spark: table.alter_schema("id int, ts bigint, dt string"),
        lambda table, spark: table.insert_overwrite_table(frame(spark, *FIRST)),
        lambda table, spark: table.upsert(
            _batch(spark, (4, 20, "b", "four")).selectExpr("*", "1.5D AS price")
        ),
    ],
    ids=["add", "drop", "overwrite", "batch"],
)
def test_other_columns_are_refused_before_anything_is_written(spark, tmp_path, change):
    table = create(spark, tmp_path)
    table.upsert(frame(spark, *FIRST))
    rename(table)
    before = sorted(Path(table.path, ".hoodie").iterdir())
    with pytest.raises(SchemaError, match=r"have ids.*(price|title|name).*differ.*ALTER TABLE"):
        change(table, spark)
    assert sorted(Path(table.path, ".hoodie").iterdir()) == before


@pytest.mark.parametrize("step", ["begin", "commit"])
def test_a_write_that_an_alter_table_overtakes_is_refused_as_one_after_it(spark, tmp_path, monkeypatch, step):
    table = create(spark, tmp_path)
    table.upsert(frame(spark, *FIRST))
    rename(table)
    real = getattr(WriteTransaction, step)

    def late(*args, **kwargs):
        monkeypatch.undo()
        rename(table, "title", "label")
        return real(*args, **kwargs)

    monkeypatch.setattr(WriteTransaction, step, late)
    with pytest.raises((SchemaError, WriteConflictError), match="have ids.*title|renamed, added or dropped"):
        table.upsert(_batch(spark, (4, 20, "b", "four")))
    found = table.snapshot().orderBy("id").select("label").collect()
    assert [row[0] for row in found] == ["one", "two", "three"]


def test_a_compaction_that_was_planned_before_a_rename_keeps_the_values(spark, tmp_path):
    table = create(spark, tmp_path, table_type="mor")
    table.upsert(frame(spark, *FIRST))
    table.upsert(frame(spark, (1, 20, "a", "uno")))
    planned = table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": 1}).instant
    assert planned is not None
    rename(table)
    assert table.compact().instant == planned
    assert _titles(table) == {1: "uno", 2: "two", 3: "three"}


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_name_in_sql_reads_a_renamed_column_of_files_from_before(spark, database, tmp_path, table_type):
    table = create(spark, tmp_path, table_type=table_type)
    name = TableName(database, "t")
    table.upsert(frame(spark, *FIRST))
    register_table(spark, name, table.storage)
    rename(table)
    register_table(spark, name, table.storage)
    told = f"select id, title from {name.sql}"
    assert dict(spark.sql(told).collect()) == {1: "one", 2: "two", 3: "three"}
    table.upsert(_batch(spark, (1, 20, "a", "uno")))
    register_table(spark, name, table.storage)
    assert dict(spark.sql(told).collect()) == _titles(table) == {1: "uno", 2: "two", 3: "three"}
    if table_type == "mor":
        based = f"select id, title from {name.with_suffix('_ro').sql}"
        assert dict(spark.sql(based).collect()) == {1: "one", 2: "two", 3: "three"}
        table.compact()
        register_table(spark, name, table.storage)
        assert dict(spark.sql(told).collect()) == dict(spark.sql(based).collect()) == _titles(table)
    assert not table.validate()


CHANGE_DATA = "hoodie.table.cdc.enabled", "hoodie.table.cdc.supplemental.logging.mode"


@pytest.mark.parametrize("logging", [None, "OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"])
def test_changes_of_before_a_rename_are_told_under_either_name(spark, tmp_path, logging):
    keeps = {} if logging is None else dict(zip(CHANGE_DATA, ("true", logging)))
    table = create(spark, tmp_path, options=keeps)
    first = table.upsert(frame(spark, *FIRST)).instant
    second = table.upsert(frame(spark, (1, 20, "a", "uno"), (4, 20, "a", "four"))).instant
    rename(table)
    for end, name in ((second, "name"), (None, "title")):
        told = {(row["_change_type"], row[name]) for row in table.changes(first, end, "all").collect()}
        assert told == {("update_before", "one"), ("update_after", "uno"), ("insert", "four")}
        assert {row[name] for row in table.changes(first, end, "latest").collect()} == {"uno", "four"}
        images = {
            tuple(json.loads(text)[name] if text else None for text in (row["before"], row["after"]))
            for row in table.cdc(first, end).collect()
        }
        assert images == {("one", "uno"), (None, "four")}
        everything = {row[name] for row in table.changes(None, end).collect()}
        assert everything == {"uno", "two", "three", "four"}


def test_a_rebuild_gives_it_other_columns(spark, tmp_path):
    table = create(spark, tmp_path, partition_by=["dt"])
    table.upsert(frame(spark, *FIRST))
    rename(table)
    rows = spark.createDataFrame([(1, 1, "a", "one", 7)], RENAMED + ", more int")
    rebuild_table(spark, table.path, rows, name="t", record_key=["id"], partition_by=["dt"])
    found = HudiTable.open(spark, table.path).snapshot().select("id", "title", "more").collect()
    assert [tuple(row) for row in found] == [(1, "one", 7)]

"""Merge-on-read tables under names of the catalog: snapshot and read-optimized, both native."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hudi_engine.errors import UnsupportedTableError
from hudi_engine.spark.catalog import TableName, drop_table, list_entries, register_table
from hudi_engine.spark.catalog import session as catalog_session
from hudi_engine.spark.catalog.session import sidecar_runner
from hudi_engine.spark.catalog.spark_table import is_internal, refresh_table
from hudi_engine.table.snapshot.manifest import publish
from hudi_engine.table.snapshot.manifest_file import Layout

from tests.helpers.handmade import HandmadeTable

pytestmark = pytest.mark.core

SCHEMA = pa.schema([("id", pa.int64()), ("dt", pa.string()), ("v", pa.string())])


def rows(*ids, dt="x", v="base"):
    return pa.table({"id": list(ids), "dt": [dt] * len(ids), "v": [v] * len(ids)}, schema=SCHEMA)


def read(spark, name, where="true"):
    return sorted(tuple(row) for row in spark.sql(f"select id, v from {name.sql} where {where}").collect())


@pytest.fixture
def name(database):
    return TableName(database, "t")


@pytest.fixture
def table(tmp_path):
    """Ids 1 to 5 in dt=x and 6 in dt=y, base files only."""
    table = HandmadeTable(tmp_path / "t", SCHEMA, ("dt",), merge_on_read=True)
    table.first = table.commit({"dt=x": {"f-0": rows(1, 2, 3, 4, 5)}, "dt=y": {"g-0": rows(6, dt="y")}})
    return table


def log(table, *ids, deletes=(), v="log", partition="dt=x", file_id="f-0", base=None):
    """Commit new versions and deletes of rows as a log file."""
    instant = table.next_instant()
    blocks = []
    if ids:
        data = rows(*ids, dt=partition[3:], v=v)
        blocks += table.data_blocks(partition, file_id, data, instant)
    if deletes:
        blocks += table.delete_blocks(partition, [str(each) for each in deletes], instant)
    table.complete(instant, [table.append_log(partition, file_id, base or table.first, blocks, instant)])
    return instant


def test_the_snapshot_has_the_logs_and_the_read_optimized_table_has_not(spark, name, table):
    log(table, 2, 9, deletes=[4])
    register_table(spark, name, table.storage)
    merged = [(1, "base"), (2, "log"), (3, "base"), (5, "base"), (6, "base"), (9, "log")]
    assert read(spark, name) == read(spark, name.with_suffix("_rt")) == merged
    assert read(spark, name.with_suffix("_ro")) == [(each, "base") for each in range(1, 7)]


def test_the_snapshot_is_read_by_native_scans_with_filters_and_partitions_pushed(spark, name, table):
    log(table, 2)
    register_table(spark, name, table.storage)
    frame = spark.sql(f"select v from {name.sql} where dt = 'x' and id > 1")
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert plan.count("FileScan parquet") == 3
    assert plan.count("GreaterThan(id,1)") == 2
    assert plan.count("= x)]") >= 2
    assert "BroadcastHashJoin" in plan and "SortMergeJoin" not in plan
    assert not {"BatchEvalPython", "MapInArrow", "ArrowEvalPython", "RDDScan"} & set(plan.split())


def scanned_files(frame):
    """Number of files each scan of a query opened, from the metrics of its executed plan."""
    frame.collect()
    plan, found = frame._jdf.queryExecution().executedPlan(), []
    pending = [plan]
    while pending:
        node = pending.pop()
        if node.nodeName() == "AdaptiveSparkPlan":
            pending.append(node.finalPhysicalPlan())
        elif node.nodeName().endswith("QueryStage"):
            pending.append(node.plan())
        elif node.nodeName().startswith("Scan parquet"):
            found.append(int(node.metrics().apply("numFiles").value()))
        pending.extend(node.children().apply(n) for n in range(node.children().size()))
    return sorted(found)


def test_each_scan_opens_only_its_own_kind_of_file(spark, name, table):
    log(table, 2)
    register_table(spark, name, table.storage)
    frame = spark.sql(f"select * from {name.sql}")
    assert scanned_files(frame) == [1, 1, 2]
    assert scanned_files(spark.sql(f"select * from {name.with_suffix('_ro').sql}")) == [2]


def test_a_reader_of_a_cached_snapshot_keeps_one_whole_commit_while_a_compaction_commits(spark, name, table):
    log(table, 2)
    register_table(spark, name, table.storage)
    before = read(spark, name)
    table.commit({"dt=x": {"f-0": rows(1, 2, 3, 4, 5, v="compacted")}})
    publish(table.storage)
    assert read(spark, name) == before
    refresh_table(spark, name)
    assert read(spark, name, "dt = 'x'") == [(each, "compacted") for each in range(1, 6)]


def test_the_statement_of_the_docs_refreshes_the_files_below_a_view(spark, name, table):
    register_table(spark, name, table.storage)
    before = read(spark, name)
    log(table, 1, v="later")
    publish(table.storage)
    assert read(spark, name) == before
    spark.sql(f"refresh table {name.with_suffix('__hudi_files').sql}")
    assert (1, "later") in read(spark, name)


def test_updates_of_updates_deletes_and_rows_that_come_back(spark, name, table):
    register_table(spark, name, table.storage)
    expected = dict.fromkeys(range(1, 7), "base")
    steps = [((1, 2), ()), ((2, 7), (3,)), ((3,), (1, 7)), ((7,), (5, 6))]
    for number, (ids, deletes) in enumerate(steps):
        log(table, *ids, deletes=[each for each in deletes if each != 6], v=f"v{number}")
        expected.update(dict.fromkeys(ids, f"v{number}"))
        for each in deletes:
            if each != 6:
                expected.pop(each)
        register_table(spark, name, table.storage)
        assert read(spark, name) == sorted(expected.items())


def test_a_file_group_of_logs_only(spark, name, table):
    instant = table.next_instant()
    blocks = table.data_blocks("dt=z", "h-0", rows(8, dt="z", v="log"), instant)
    (table.path / "dt=z").mkdir()
    (table.path / "dt=z" / ".hoodie_partition_metadata").write_text(
        f"commitTime={instant}\npartitionDepth=1\n"
    )
    table.complete(instant, [table.append_log("dt=z", "h-0", instant, blocks, instant)])
    register_table(spark, name, table.storage)
    assert read(spark, name, "dt = 'z'") == [(8, "log")]
    assert read(spark, name.with_suffix("_ro"), "dt = 'z'") == []


def test_masks_far_into_a_file_of_several_row_groups(spark, name, tmp_path):
    table = HandmadeTable(tmp_path / "big", SCHEMA, ("dt",), merge_on_read=True)
    table.first = table.commit({"dt=x": {"f-0": rows(*range(10_000))}})
    changed = [0, 63, 64, 4095, 4096, 8191, 8192, 9999]
    log(table, *changed, deletes=[5000])
    register_table(spark, name, table.storage)
    assert [row[0] for row in read(spark, name, "v = 'log'")] == changed
    assert spark.sql(f"select count(*), sum(id) from {name.sql}").first()[:] == (
        9999,
        sum(range(10_000)) - 5000,
    )


@pytest.mark.parametrize("values", [(None, ""), (None,)])
def test_nulls_and_empty_strings_of_the_null_folder_in_logs(spark, name, tmp_path, values):
    table = HandmadeTable(tmp_path / "n", SCHEMA, ("dt",), merge_on_read=True)
    folder = "dt=__HIVE_DEFAULT_PARTITION__"
    table.first = table.commit({folder: {"f-0": rows(1, dt=None)}})
    instant = table.next_instant()
    data = pa.concat_tables([rows(number, dt=value) for number, value in enumerate(values, start=2)])
    blocks = table.data_blocks(folder, "f-0", data, instant)
    table.complete(instant, [table.append_log(folder, "f-0", table.first, blocks, instant)])
    published = register_table(spark, name, table.storage)
    assert published.layout is (Layout.FLAT if "" in values else Layout.HIVE)
    found = {row.id: row.dt for row in spark.sql(f"select id, dt from {name.sql}").collect()}
    assert found == {1: None, **dict(enumerate(values, start=2))}


def test_a_table_without_partitions_and_new_columns(spark, name, tmp_path):
    table = HandmadeTable(tmp_path / "flat", SCHEMA, merge_on_read=True)
    table.first = table.commit({"": {"f-0": rows(1, 2)}})
    log(table, 2, partition="", file_id="f-0")
    register_table(spark, name, table.storage, comment="first", column_comments={"v": "value"})
    table.schema = SCHEMA.append(pa.field("n", pa.int32()))
    instant = table.next_instant()
    data = pa.table({"id": [1], "dt": ["x"], "v": ["log"], "n": [7]}, schema=table.schema)
    blocks = table.data_blocks("", "f-0", data, instant)
    table.complete(instant, [table.append_log("", "f-0", table.first, blocks, instant)])
    register_table(spark, name, table.storage)
    for each in (name, name.with_suffix("_rt")):
        assert spark.sql(f"select id, n from {each.sql} order by id").collect() == [(1, 7), (2, None)]
    assert spark.table(name.sql).schema["v"].metadata["comment"] == "value"


def test_the_names_of_a_table_and_their_kinds(spark, name, table):
    register_table(spark, name, table.storage, comment="it's", column_comments={"v": "a 'value'"})
    found = {each.name.name: (each.kind, each.comment) for each in list_entries(spark, name.database)}
    assert found == {
        "t": ("snapshot", "it's"),
        "t_rt": ("realtime", "it's"),
        "t_ro": ("read_optimized", "it's"),
        "t__hudi_files": ("files", "it's"),
    }
    assert [each for each in found if is_internal(each)] == ["t__hudi_files"]
    drop_table(spark, name)
    assert list_entries(spark, name.database) == []


def test_a_name_taken_by_something_else_is_left_alone_and_the_table_still_works(spark, name, table):
    spark.sql(f"create view {name.with_suffix('_ro').sql} as select 1 as one")
    register_table(spark, name, table.storage)
    assert len(read(spark, name)) == 6
    assert spark.table(name.with_suffix("_ro").sql).columns == ["one"]
    drop_table(spark, name)
    assert [each.name.name for each in list_entries(spark, name.database)] == ["t_ro"]


@pytest.mark.parametrize(("suffix", "merge_on_read"), [("_ro", False), ("_rt", True)])
def test_another_hudi_table_keeps_its_name(spark, name, table, tmp_path, suffix, merge_on_read):
    register_table(spark, name, table.storage)
    other = HandmadeTable(tmp_path / "other", SCHEMA, ("dt",), merge_on_read=merge_on_read)
    other.commit({"dt=x": {"f-0": rows(7)}})
    taken = name.with_suffix(suffix)
    drop_table(spark, name)
    register_table(spark, taken, other.storage)
    register_table(spark, name, table.storage)
    assert read(spark, taken) == [(7, "base")]
    assert len(read(spark, name)) == 6


def test_a_table_that_changes_its_type_changes_its_entries(spark, name, table, tmp_path):
    register_table(spark, name, table.storage)
    cow = HandmadeTable(tmp_path / "cow", SCHEMA, ("dt",))
    cow.commit({"dt=x": {"f-0": rows(7)}})
    register_table(spark, name, cow.storage)
    assert read(spark, name) == [(7, "base")]
    assert [each.name.name for each in list_entries(spark, name.database)] == ["t"]
    register_table(spark, name, table.storage)
    assert len(read(spark, name)) == 6


def test_a_permanent_view_over_the_snapshot_follows_it(spark, name, table):
    register_table(spark, name, table.storage)
    view = name.with_suffix("_view")
    spark.sql(f"create view {view.sql} as select id, v from {name.sql} where v = 'log'")
    log(table, 2)
    register_table(spark, name, table.storage)
    assert read(spark, view) == [(2, "log")]


def test_a_commit_costs_refreshes_and_no_statement(spark, name, table, monkeypatch):
    register_table(spark, name, table.storage)
    log(table, 2)
    statements = []
    monkeypatch.setattr(type(spark), "sql", lambda self, text, *args, **more: statements.append(text))
    register_table(spark, name, table.storage)
    assert statements == []


def test_many_logs_are_merged_by_tasks(spark, name, table, monkeypatch):
    monkeypatch.setattr(catalog_session, "_DRIVER_LIMIT_BYTES", 0)
    log(table, 2)
    log(table, 6, partition="dt=y", file_id="g-0")
    publish(table.storage, run_sidecars=sidecar_runner(spark))
    register_table(spark, name, table.storage)
    assert read(spark, name, "v = 'log'") == [(2, "log"), (6, "log")]


def test_columns_may_be_named_like_the_parts_of_the_query(spark, name, tmp_path):
    kinds = {
        "b": pa.struct([("_metadata", pa.int32())]),
        "m": pa.int32(),
        "chunk": pa.int32(),
        "words": pa.string(),
    }
    schema = pa.schema([("id", pa.int64()), *kinds.items()])
    table = HandmadeTable(tmp_path / "odd", schema, merge_on_read=True)

    def data(number):
        row = {"id": 1, "b": {"_metadata": number}, "m": number, "chunk": number, "words": str(number)}
        return pa.Table.from_pylist([row], schema=schema)

    first = table.commit({"": {"f-0": data(1)}})
    instant = table.next_instant()
    blocks = table.data_blocks("", "f-0", data(2), instant)
    table.complete(instant, [table.append_log("", "f-0", first, blocks, instant)])
    register_table(spark, name, table.storage)
    assert spark.sql(f"select b._metadata, m, chunk, words from {name.sql}").collect() == [(2, 2, 2, "2")]


def test_a_column_that_hides_sparks_metadata_is_refused(spark, name, tmp_path):
    schema = pa.schema([("id", pa.int64()), ("_METADATA", pa.string())])
    table = HandmadeTable(tmp_path / "odd", schema, merge_on_read=True)
    table.commit({"": {"f-0": pa.table({"id": [1], "_METADATA": ["x"]}, schema=schema)}})
    with pytest.raises(UnsupportedTableError, match="_METADATA|_metadata"):
        register_table(spark, name, table.storage)


def test_size_of_zero_that_spark_measured_of_all_tables_is_removed(spark, name, table):
    def sizes():
        plans = [
            spark.table(name.with_suffix(suffix).sql)._jdf.queryExecution().optimizedPlan()
            for suffix in ("__hudi_files", "_ro")
        ]
        return [int(plan.stats().sizeInBytes()) for plan in plans]

    register_table(spark, name, table.storage)
    before = sizes()
    assert all(before)
    spark.sql(f"analyze tables in {name.database} compute statistics noscan")
    register_table(spark, name, table.storage)
    assert sizes() == before

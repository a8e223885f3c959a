"""Spark Connect, spoken by PySpark's own client."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyspark
import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.server.limits import ServerLimits
from hudi_engine.server.passwords import Passwords
from hudi_engine.server.server import HudiServer, ServerOptions, check_options
from hudi_engine.spark.sql.jobs import JobGroup
from hudi_engine.spark.sql.session import StatementSession
from pyspark.errors import AnalysisException, ParseException, PySparkException

from dbt.adapters.hudi.serve.command import command_parser, connect_line

if pyspark.__version__ < "4":
    pytest.skip("Spark Connect comes with PySpark 4", allow_module_level=True)

import grpc
from hudi_engine.server.connect import guard
from pyspark.sql.connect import functions as F
from pyspark.sql.connect import proto
from pyspark.sql.connect.proto.base_pb2_grpc import SparkConnectServiceStub
from pyspark.sql.connect.session import SparkSession

pytestmark = [pytest.mark.slow]

Start = Callable[..., HudiServer]
Remote = Callable[..., Any]
Open = Callable[..., StatementSession]
LONG = "insert into {} select id, 'x' v from range(100000000000) where sqrt(id) < 0 or id = 5"
SERVICE = "/spark.connect.SparkConnectService/"


@pytest.fixture(scope="module")
def connect_server(start_server: Start) -> HudiServer:
    return start_server(connect_port=0)


@pytest.fixture
def remote(connect_server: HudiServer) -> Iterator[Remote]:
    """Open sessions of PySpark on the server, with the parameters of a connection string."""
    opened: list[Any] = []

    def make(parameters: str = "", server: HudiServer = connect_server, host: str = "127.0.0.1") -> Any:
        opened.append(SparkSession(connection=f"sc://{host}:{server.connect_port}/{parameters}"))
        return opened[-1]

    yield make
    for each in opened:
        with suppress(Exception):
            each.client.release_session()
        with suppress(Exception):
            each.client.close()


@pytest.fixture
def table(remote: Remote, request: pytest.FixtureRequest) -> str:
    """A Hudi table of one row."""
    name = f"shop.t{uuid.uuid4().hex[:8]}"
    rows(remote(), f"create table {name} using hudi tblproperties (primaryKey = 'id') as select 1L id, 'a' v")
    return name


def rows(spark: Any, text: str, **given: Any) -> list[tuple[Any, ...]]:
    return [tuple(each) for each in spark.sql(text, **given).collect()]


def upsert(writer: Any) -> Any:
    """A writer that asks for the operation as Hudi's own data source takes it."""
    return writer.option("hoodie.datasource.write.operation", "upsert")


def begun(spark: Any, text: str) -> Callable[[], Exception | None]:
    """Begin a statement in a thread; what is returned waits for its failure."""
    failed: list[Exception] = []

    def run() -> None:
        try:
            spark.addTag("mine")
            spark.sql(text).collect()
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def ended() -> Exception | None:
        thread.join(30)
        return failed[0] if failed else None

    return ended


def wait_for(what: Callable[[], object]) -> None:
    until = time.monotonic() + 30
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)


class TestStatements:
    def test_tables_are_made_changed_and_read(self, remote: Remote, table: str) -> None:
        spark = remote()
        assert rows(
            spark,
            f"merge into {table} t using (select 1L id, 'A' v union all select 2L, 'b') s on t.id = s.id "
            "when matched then update set * when not matched then insert *",
        ) == [(2, 1, 0, 1)]
        assert rows(spark, f"insert into {table} values (3, 'c'), (4, 'd')") == [(2, 0, 0, 2)]
        assert rows(spark, f"update {table} set v = upper(v) where id > 2") == [(2, 2, 0, 0)]
        assert rows(spark, f"delete from {table} where id = 4") == [(1, 0, 1, 0)]
        assert rows(remote(), f"select id, v from {table} order by id") == [(1, "A"), (2, "b"), (3, "C")]
        assert rows(spark, f"show tblproperties {table}") and rows(spark, f"describe {table}")[0][0] == "id"
        assert rows(spark, f"drop table {table}") == []

    def test_rows_are_those_of_a_session_in_the_same_process(
        self, remote: Remote, open_session: Open
    ) -> None:
        query = (
            "select true a, 1y b, 2s c, 3 d, 4L e, cast(0.5 as float) f, 1e300d g, cast(-12.30 as decimal(38, 2)) h, 'grün \\0' i, "
            "cast('ab' as binary) j, date'0001-02-03' k, timestamp'2026-01-02 03:04:05.6' l, timestamp_ntz'2026-01-02 03:04:05' m, "
            "interval '3 04:05:06' day to second n, array(1, null) o, map('k', 1.5d) p, named_struct('a', 1, 'b', array('x')) q, "
            "cast(null as string) r, null s, parse_json('{\"v\": [1]}') t"
        )
        expected = open_session().spark.sql(query)
        found = remote().sql(query)
        assert found.schema == expected.schema
        assert [*found.drop("t").collect(), *found.select(F.to_json("t")).collect()] == [
            *expected.drop("t").collect(),
            ('{"v":[1]}',),
        ]

    def test_commits_of_others_are_seen_by_the_next_action(
        self, remote: Remote, open_session: Open, table: str
    ) -> None:
        spark = remote()
        frames = [spark.table(table), spark.sql(f"select * from {table}"), spark.table(table).select("id")]
        assert [each.count() for each in frames] == [1, 1, 1]
        open_session().run(f"insert into {table} values (2, 'b')", JobGroup("other"))
        assert [each.count() for each in frames] == [2, 2, 2]
        assert frames[1].filter("id = 2").join(frames[0], "id").count() == 1

    def test_earlier_states_are_read_each_time_anew(self, remote: Remote, table: str) -> None:
        spark = remote()
        [(first,)] = rows(spark, f"select max(_hoodie_commit_time) from {table}")
        rows(spark, f"insert into {table} values (2, 'b')")
        earlier = spark.sql(f"select * from {table} version as of '{first}'")
        changes = spark.sql(f"select id from hudi_table_changes('{table}', 'latest_state', 'earliest')")
        assert [earlier.count(), earlier.filter("id = 1").count(), changes.count()] == [1, 1, 2]
        assert spark.read.option("as.of.instant", first).table(table).count() == 1
        with pytest.raises(AnalysisException, match="hudi_table_changes"):
            spark.read.option("hoodie.datasource.query.type", "incremental").table(table).count()
        rows(spark, f"insert into {table} values (3, 'c')")
        assert [earlier.count(), changes.count(), spark.table(table).count()] == [1, 3, 3]
        assert rows(
            spark, f"select count(*) from information_schema.tables where table_schema = '{table[:4]}'"
        )[0][0]
        views = [each.name for each in spark.catalog.listTables() if each.isTemporary]
        assert views == []

    def test_views_and_settings_are_those_of_statements_and_frames(self, remote: Remote, table: str) -> None:
        spark, other = remote(), remote()
        spark.range(2, 4).selectExpr("id", "string(id) v").createOrReplaceTempView("mine")
        rows(spark, f"insert into {table} select * from mine")
        rows(spark, f"create temporary view theirs as select * from {table} where id > 1")
        assert spark.table("theirs").count() == 2
        spark.conf.set("spark.sql.shuffle.partitions", "7")
        rows(spark, "set spark.sql.session.timeZone = Asia/Tokyo")
        assert rows(spark, "set spark.sql.shuffle.partitions")[0][1] == "7"
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
        rows(spark, "use shop")
        assert spark.catalog.currentDatabase() == "shop"
        assert other.conf.get("spark.sql.shuffle.partitions") == "1"
        assert other.catalog.currentDatabase() == "default"
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            other.table("mine").count()

    def test_views_of_frames_show_later_commits(self, remote: Remote, open_session: Open, table: str) -> None:
        spark = remote()
        spark.table(table).filter("id > 0").createOrReplaceTempView("plain")
        spark.sql(f"select id, v from {table}").createOrReplaceTempView("of_text")
        spark.table("plain").withColumn("id", F.col("id") + 1).createOrReplaceTempView("plain_2")
        spark.table("plain_2").withColumn("id", F.col("id") + 1).createOrReplaceTempView("plain_2")
        spark.table(table).createOrReplaceTempView("replaced")
        rows(spark, "create or replace temporary view replaced as select 7 id")
        open_session().run(f"insert into {table} values (2, 'b')", JobGroup("other"))
        assert [spark.table(each).count() for each in ("plain", "of_text")] == [2, 2]
        assert rows(spark, "select count(*) from `Plain` join of_text using (id)") == [(2,)]
        assert rows(spark, "select max(id) from plain_2 union all select id from replaced") == [(3,), (7,)]
        rows(spark, f"insert into {table} select id + 10, v from plain")
        assert spark.table("plain").count() == 4
        assert spark.catalog.dropTempView("plain")
        assert not spark.catalog.tableExists("plain")
        with pytest.raises(AnalysisException):
            spark.table("plain").count()

    def test_frames_and_values_are_named_in_statements(self, remote: Remote, table: str) -> None:
        spark = remote()
        frame = spark.createDataFrame([(2, "b"), (3, "c")], "id long, v string")
        rows(spark, f"insert into {table} select * from {{new}} where id > 2", new=frame)
        assert rows(spark, "select v from {t} where id = :id", t=spark.table(table), args={"id": 3}) == [
            ("c",)
        ]
        with pytest.raises(AnalysisException, match="parameters of a statement"):
            spark.sql(f"insert into {table} values (:id, 'x')", args={"id": 9})

    def test_drop_and_create_are_one_replacement(self, remote: Remote, table: str) -> None:
        spark, other = remote(), remote()
        spark.sql(f"drop table {table}")
        assert other.table(table).count() == 1
        spark.sql(f"create table {table} using hudi as select 5L id union all select 6L")
        assert other.table(table).count() == 2
        spark.sql(f"drop table {table}")
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            spark.table(table).count()

    def test_failures_are_pysparks_with_the_whole_sentence(self, remote: Remote, table: str) -> None:
        spark = remote()
        for text, kind, state, said in (
            (f"insert into {table} values (1)", AnalysisException, "42000", table),
            (
                f"alter table {table} rename column v to w",
                AnalysisException,
                "42000",
                "add a new one, or rebuild",
            ),
            ("select * from shop.nothing", AnalysisException, "42P01", "TABLE_OR_VIEW_NOT_FOUND"),
            ("insert into", ParseException, "42601", "PARSE_SYNTAX_ERROR"),
            ("selec 1", ParseException, "42601", "PARSE_SYNTAX_ERROR"),
            ("execute immediate 'select 1'", AnalysisException, "42000", "EXECUTE IMMEDIATE"),
        ):
            with pytest.raises(kind, match=said) as raised:
                spark.sql(text).collect()
            assert raised.value.getSqlState() == state


class TestFrames:
    def test_rows_are_inserted_by_place_and_by_name(self, remote: Remote, table: str) -> None:
        spark = remote()
        frame = spark.createDataFrame([("b", 2)], "v string, id long")
        frame.select("id", "v").write.insertInto(table)
        frame.replace("b", "c").withColumn("id", F.lit(3).cast("long")).write.mode("append").saveAsTable(
            table
        )
        frame.withColumn("id", F.lit(4).cast("long")).writeTo(table).append()
        assert rows(spark, f"select * from {table} order by id") == [(1, "a"), (2, "b"), (3, "c"), (4, "b")]
        frame.write.mode("overwrite").saveAsTable(table)
        assert rows(spark, f"select * from {table}") == [(2, "b")]
        assert rows(
            spark,
            f"merge into {table} t using (select 2L id, 'B' v) s on t.id = s.id when matched then update set *",
        ) == [(1, 1, 0, 0)]
        frame.select("id", "v").write.mode("overwrite").insertInto(table)
        assert rows(spark, f"select * from {table}") == [(2, "b")]

    def test_tables_are_made_of_frames(self, remote: Remote, open_session: Open) -> None:
        spark = remote()
        name = f"shop.made{uuid.uuid4().hex[:8]}"
        frame = spark.createDataFrame([(1, "x", 5), (2, "y", 6)], "id long, p string, n int")
        frame.write.format("hudi").partitionBy("p").option("primaryKey", "id").saveAsTable(name)
        assert open_session().warehouse.hudi_base(open_session().spark, *name.split(".")) is not None
        with pytest.raises(AnalysisException, match="exists; drop it first"):
            frame.write.format("hudi").saveAsTable(name)
        frame.write.format("hudi").mode("ignore").saveAsTable(name)
        frame.filter("p = 'y'").selectExpr("id + 10 id", "p", "n").writeTo(name).overwritePartitions()
        assert rows(spark, f"select id, p from {name} order by id") == [(1, "x"), (12, "y")]
        writer = (
            frame.limit(1)
            .writeTo(name)
            .using("hudi")
            .tableProperty("primaryKey", "id")
            .partitionedBy(F.col("p"))
        )
        writer.createOrReplace()
        assert spark.table(name).count() == 1
        assert spark.catalog.dropTable(name) is None or True
        assert not spark.catalog.tableExists(name)

    def test_an_overwrite_replaces_every_partition_whatever_the_session_says(self, remote: Remote) -> None:
        spark = remote()
        name = f"shop.whole{uuid.uuid4().hex[:8]}"
        frame = spark.createDataFrame([(1, "x"), (2, "y")], "id long, p string")
        frame.write.format("hudi").partitionBy("p").option("primaryKey", "id").saveAsTable(name)
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        frame.selectExpr("9L id", "'x' p").limit(1).write.mode("overwrite").saveAsTable(name)
        assert rows(spark, f"select * from {name}") == [(9, "x")]
        assert spark.conf.get("spark.sql.sources.partitionOverwriteMode") == "dynamic"

    @pytest.mark.parametrize("mode", ["append", "overwrite"])
    def test_a_table_that_was_dropped_is_made_anew(self, remote: Remote, table: str, mode: str) -> None:
        spark = remote()
        spark.sql(f"drop table {table}")
        spark.range(1).write.mode(mode).saveAsTable(table)
        assert rows(spark, f"select * from {table}") == [(0,)]

    def test_what_would_go_round_the_engine_is_refused(
        self, remote: Remote, table: str, warehouse: Any, tmp_path: Path
    ) -> None:
        spark = remote()
        base = warehouse.hudi_base(warehouse.open_session(), *table.split("."))
        root = str(Path(base.removeprefix("file:")).parent)
        frame = spark.range(1).selectExpr("id", "'z' v")
        stream = (
            spark.readStream.format("rate").load().writeStream.option("checkpointLocation", str(tmp_path))
        )
        for work, said in (
            (lambda: frame.write.format("hudi").save(f"{tmp_path}/x"), "saveAsTable"),
            (lambda: frame.write.mode("overwrite").parquet(base), "Hudi tables are at"),
            (lambda: frame.write.mode("append").parquet(f"{base}/below"), "Hudi tables are at"),
            (lambda: frame.write.mode("overwrite").parquet(root), "Hudi tables are at"),
            (lambda: frame.write.insertInto(f"parquet.`{base}`"), "Hudi tables are at"),
            (
                lambda: rows(spark, f"insert overwrite directory '{base}' using parquet select 1"),
                "Hudi tables are at",
            ),
            (
                lambda: rows(spark, f"create table shop.over (id bigint) using parquet location '{base}'"),
                "Hudi tables are at",
            ),
            (lambda: upsert(frame.write.mode("append")).saveAsTable(table), "MERGE INTO upserts"),
            (lambda: upsert(frame.write).insertInto(table), "MERGE INTO upserts"),
            (lambda: upsert(frame.writeTo(table)).append(), "MERGE INTO upserts"),
            (lambda: frame.write.partitionBy("v").mode("append").saveAsTable(table), "leave it out"),
            (lambda: frame.write.format("parquet").mode("append").saveAsTable(table), "is a Hudi table"),
            (lambda: frame.mergeInto(table, F.expr("true")).whenMatched().delete().merge(), "MERGE INTO"),
            (lambda: stream.toTable(table), "each batch"),
            (lambda: spark.readStream.table(table).isStreaming, "hudi_table_changes"),
            (lambda: spark.read.format("hudi").load(base).count(), "by its name"),
            (lambda: frame.writeTo(table).overwrite(F.col("id") == 1), "REPLACE WHERE"),
            (lambda: frame.write.format("hudi").bucketBy(2, "id").saveAsTable("shop.bucketed"), "bucketBy"),
            (lambda: spark.catalog.createTable("shop.c", schema=frame.schema, source="hudi"), "CREATE TABLE"),
        ):
            with pytest.raises(PySparkException, match=said):
                work()
        assert rows(spark, f"select * from {table}") == [(1, "a")]
        frame.write.parquet(f"{tmp_path}/files")
        assert spark.read.parquet(f"{tmp_path}/files").count() == 1
        frame.write.format("parquet").saveAsTable("shop.plain")
        frame.write.insertInto("shop.plain")
        frame.write.mode("append").saveAsTable("shop.plain")
        assert spark.table("shop.plain").count() == 3
        frame.write.mode("overwrite").saveAsTable("shop.plain")
        assert spark.table("shop.plain").count() == 1
        frame.write.saveAsTable("shop.unnamed")
        assert warehouse.hudi_base(warehouse.open_session(), "shop", "unnamed")

    def test_clients_that_send_statements_as_plans_are_answered_rows(
        self, remote: Remote, table: str
    ) -> None:
        spark = remote()
        plan = proto.Plan()
        for text, expected in (
            (f"insert into {table} values (2, 'b')", [(0, 0, 0, 1)]),
            (f"show tables in shop like '{table[5:]}'", [("shop", table[5:], False)]),
            (f"drop table {table}", []),
        ):
            plan.root.sql.query = text
            found, *_ = spark.client.to_table(plan, {})
            assert [tuple(each.values()) for each in found.to_pylist()] == expected or text.startswith(
                "insert"
            )
        assert not spark.catalog.tableExists(table)

    def test_statements_inside_of_plans_are_refused(self, remote: Remote, table: str) -> None:
        spark = remote()
        for text in (
            f"drop table {table}",
            f"with a as (select 2L, 'b') insert into {table} select * from a",
        ):
            plan = proto.Plan()
            plan.root.limit.input.sql.query = text
            with pytest.raises(AnalysisException, match="no query is refused"):
                spark.client.to_table(plan, {})
        plan = proto.Plan()
        plan.root.limit.input.catalog.drop_table.table_name = table
        with pytest.raises(AnalysisException, match="by itself"):
            spark.client.to_table(plan, {})
        assert spark.table(table).count() == 1

    def test_streams_of_other_sources_run(self, remote: Remote) -> None:
        spark = remote()
        query = spark.readStream.format("rate").load().writeStream.format("memory").queryName("seen").start()
        assert query.isActive
        query.stop()

    def test_a_long_chain_of_calls_runs(self, remote: Remote) -> None:
        frame = remote().range(3)
        for _ in range(120):
            frame = frame.limit(3)
        assert frame.count() == 3


class TestRunning:
    def test_interrupted_writes_leave_no_half_commit(
        self, connect_server: HudiServer, remote: Remote, table: str
    ) -> None:
        spark = remote()
        for interrupt in (
            spark.interruptAll,
            lambda: spark.interruptTag("mine"),
            lambda: connect_server.sessions.cancel(connect_server.sessions.running[0].handle.hex(), None),
        ):
            ended = begun(spark, LONG.format(table))
            wait_for(lambda: connect_server.sessions.running)
            time.sleep(1)
            interrupt()
            assert "was cancelled" in str(ended())
            assert rows(spark, f"select id from {table}") == [(1,)]

    def test_queries_are_interrupted_and_shown(self, connect_server: HudiServer, remote: Remote) -> None:
        spark = remote()
        ended = begun(spark, "select count(*) from range(100000000000) where sqrt(id) < 0")
        wait_for(lambda: connect_server.sessions.running)
        time.sleep(1)
        [running] = connect_server.sessions.running
        assert running.text.startswith("select count(*)")
        assert connect_server.sessions.cancel(running.handle.hex(), None)
        assert ended() is not None
        assert connect_server.sessions.history.last[0].how == "cancelled"
        ended = begun(spark, "select count(*) from range(100000000000) where sqrt(id) < 1")
        wait_for(lambda: [each for each in connect_server.sessions.running if each.text.endswith("< 1")])
        time.sleep(1)
        assert spark.interruptTag("mine")
        assert "OPERATION_CANCELED" in str(ended())
        assert connect_server.sessions.history.last[0].how == "cancelled"

    def test_answers_are_read_again_until_they_are_released(
        self, connect_server: HudiServer, remote: Remote, table: str
    ) -> None:
        spark = remote()
        name, operation = spark.client._session_id, str(uuid.uuid4())
        user = proto.UserContext(user_id=spark.client._user_id)
        with grpc.insecure_channel(f"127.0.0.1:{connect_server.connect_port}") as channel:
            stub = SparkConnectServiceStub(channel)
            request = proto.ExecutePlanRequest(session_id=name, user_context=user, operation_id=operation)
            request.request_options.add().reattach_options.reattachable = True
            request.plan.command.sql_command.sql = f"insert into {table} values (2, 'b')"
            stream = stub.ExecutePlan(request)
            first = next(stream)
            stream.cancel()
            again = proto.ReattachExecuteRequest(session_id=name, user_context=user, operation_id=operation)
            both = list(stub.ReattachExecute(again))
            again.last_response_id = first.response_id
            [last] = stub.ReattachExecute(again)
            assert [each.response_id for each in both] == [first.response_id, last.response_id]
            assert last.HasField("result_complete")
            release = proto.ReleaseExecuteRequest(session_id=name, user_context=user, operation_id=operation)
            release.release_all.SetInParent()
            stub.ReleaseExecute(release)
            with pytest.raises(grpc.RpcError, match="OPERATION_NOT_FOUND"):
                list(stub.ReattachExecute(again))
        assert spark.table(table).count() == 2

    def test_sessions_are_counted_shown_and_closed(self, start_server: Start, remote: Remote) -> None:
        server = start_server(connect_port=0, limits=ServerLimits(sessions=1, idle_s=2))
        spark = remote(";user_id=ann", server)
        spark.range(1).count()
        assert [each.user for each in server.sessions.open_sessions] == ["ann"]
        with pytest.raises(PySparkException, match="max-sessions"):
            remote("", server).range(1).count()
        wait_for(lambda: not server.sessions.count)
        with pytest.raises(PySparkException, match="idle"):
            spark.range(1).count()
        other = remote("", server)
        other.range(1).count()
        other.client.release_session()
        assert server.sessions.count == 0

    def test_a_server_that_ends_answers_what_ends_in_time(
        self, start_server: Start, remote: Remote, table: str
    ) -> None:
        server = start_server(connect_port=0, grace_s=30)
        request = proto.ExecutePlanRequest(session_id=str(uuid.uuid4()))
        request.plan.command.sql_command.sql = f"insert into {table} select id + 5, 'b' from range(2)"
        with grpc.insecure_channel(f"127.0.0.1:{server.connect_port}") as channel:
            stream = SparkConnectServiceStub(channel).ExecutePlan(request)
            wait_for(lambda: server.sessions.running)
            server.stop()
            assert [each.HasField("result_complete") for each in stream] == [False, True]
        assert remote().table(table).count() == 3

    def test_a_cloned_session_has_views_of_its_own(self, connect_server: HudiServer, remote: Remote) -> None:
        spark = remote()
        spark.range(3).createOrReplaceTempView("shared")
        copy = spark.cloneSession()
        copy.range(1).createOrReplaceTempView("later")
        assert rows(copy, "select count(*) from shared") == [(3,)]
        with pytest.raises(AnalysisException):
            spark.table("later").count()
        copy.client.release_session()


class TestWaysIn:
    def test_users_log_in_and_reach_no_session_of_others(
        self, start_server: Start, remote: Remote, users: str
    ) -> None:
        server = start_server(connect_port=0, log_in=Passwords.load(users).check)
        assert "token=USER:PASSWORD" in connect_line(server._options, 1)
        name = str(uuid.uuid4())
        password = quote(quote("sëcret: yes"))
        ann = remote(f";user_id=bob;session_id={name};token=ann:{password}", server, "localhost")
        ann.range(1).createOrReplaceTempView("hers")
        bob = remote(f";user_id=ann;session_id={name};token=bob:other", server, "localhost")
        assert not bob.catalog.tableExists("hers")
        assert sorted(each.user for each in server.sessions.open_sessions) == ["ann", "bob"]
        for token in ("", ";token=ann:wrong", ";token=ann"):
            with pytest.raises(PySparkException, match="asks for user and password"):
                remote(token, server, "localhost").range(1).count()

    def test_everything_goes_through_tls(
        self, start_server: Start, users: str, certificate: tuple[str, str], tmp_path: Path
    ) -> None:
        server = start_server(connect_port=0, tls=certificate, log_in=Passwords.load(users).check)
        program = (
            "import sys; from pyspark.sql import SparkSession\n"
            "spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()\n"
            "print('rows', spark.sql('select 7').collect()[0][0]); spark.stop()"
        )

        found = subprocess.run(
            [
                sys.executable,
                "-c",
                program,
                f"sc://localhost:{server.connect_port}/;use_ssl=true;token=bob:other",
            ],
            env={**os.environ, "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": certificate[0]},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "rows 7" in found.stdout, found.stderr[-2000:]

    def test_bytes_that_are_no_message_end_the_call_only(
        self, connect_server: HudiServer, remote: Remote
    ) -> None:
        deep = b""
        for _ in range(30_000):  # a filter of a filter of a filter
            deep = b"\x42" + _length(b"\x0a" + _length(deep))
            if len(deep) > 60_000:
                break
        with grpc.insecure_channel(f"127.0.0.1:{connect_server.connect_port}") as channel:
            for data in (b"\xff" * 50, b"\x1a\x05\x0a\xff", b"", b"\x1a" + _length(b"\x0a" + _length(deep))):
                for method in ("ExecutePlan", "ReattachExecute"):
                    with pytest.raises(grpc.RpcError):
                        list(channel.unary_stream(f"{SERVICE}{method}")(data))
                for method in (
                    "AnalyzePlan",
                    "Config",
                    "Interrupt",
                    "ReleaseExecute",
                    "CloneSession",
                    "GetStatus",
                ):
                    with pytest.raises(grpc.RpcError):
                        channel.unary_unary(f"{SERVICE}{method}")(data)
            with pytest.raises(grpc.RpcError):
                channel.unary_unary(f"{SERVICE}Nothing")(b"")
        assert remote().range(2).count() == 2

    def test_nobody_speaks_to_spark_behind_the_server(self, warehouse: Any) -> None:
        from hudi_engine.spark.jvm.connect import connect_service

        service = connect_service(warehouse.open_session())
        with pytest.raises(Exception, match="UNAUTHENTICATED"):
            SparkSession(connection=f"sc://127.0.0.1:{service.port}").range(1).count()
        assert warehouse.open_session().conf.get("spark.connect.authenticate.token", "") == ""


class TestCodeOfClients:
    @pytest.mark.parametrize(
        "work",
        [
            lambda spark: spark.range(1).select(F.udf(lambda x: x, "long")("id")).collect(),
            lambda spark: spark.udf.register("f", lambda x: x, "long"),
            lambda spark: spark.udf.registerJavaFunction("f", "java.lang.Object", "long"),
            lambda spark: spark.range(1).mapInPandas(lambda parts: parts, "id long").collect(),
            lambda spark: spark.range(1).groupBy("id").applyInPandas(lambda part: part, "id long").collect(),
            lambda spark: spark.range(1).select(F.call_function("reflect", F.lit("a"), F.lit("b"))).collect(),
            lambda spark: spark.range(1).selectExpr("java_method('java.lang.System', 'exit', 1)").collect(),
            lambda spark: spark.range(1).filter("reflect('a', 'b') = 1").collect(),
            lambda spark: spark.sql("select reflect('java.lang.System', 'exit', 1)").collect(),
            lambda spark: spark.sql("add jar '/x.jar'"),
            lambda spark: spark.read.format("jdbc").option("url", "jdbc:x").load().collect(),
            lambda spark: spark.range(1).write.format("com.example.Source").save("/tmp/x"),
            lambda spark: spark.read.option("fs.s3a.impl", "com.example.Files").parquet("/tmp/x").collect(),
            lambda spark: spark.conf.set("spark.sql.catalog.mine", "com.example.Catalog"),
            lambda spark: spark.addArtifacts(__file__, pyfile=True),
            lambda spark: spark.addArtifacts(__file__, file=True),
            lambda spark: spark.client.execute_command(_external_command()),
        ],
    )  # fmt: skip
    def test_code_is_refused_by_name(self, remote: Remote, work: Callable[[Any], object]) -> None:
        spark = remote()
        with pytest.raises(PySparkException, match="without --allow-code"):
            work(spark)
        assert spark.range(1).count() == 1

    def test_secrets_among_the_settings_are_hidden(self, remote: Remote) -> None:
        spark = remote()
        spark.conf.set("spark.my.secret.key", "of the server")
        with pytest.raises(PySparkException):  # Spark 4.3 itself hides them so
            spark.conf.get("spark.my.secret.key")
        assert "of the server" not in str([spark.conf.getAll, rows(spark, "set spark.my.secret.key")])
        answer = proto.ConfigResponse(
            pairs=[proto.KeyValue(key="a.password", value="x"), proto.KeyValue(key="b", value="y")]
        )
        guard.without_secrets(answer)
        assert [each.value for each in answer.pairs] == ["***", "y"]

    def test_rows_that_go_as_a_file_are_no_code(self, remote: Remote) -> None:
        spark = remote()
        frame = spark.createDataFrame([(each, "x" * 1000) for each in range(3000)], "id long, v string")
        assert frame.count() == 3000

    @pytest.mark.long
    def test_code_runs_where_the_server_allows_it(self, start_server: Start, remote: Remote) -> None:
        server = start_server(connect_port=0, limits=ServerLimits(allow_code=True))
        double = F.udf(lambda x: x * 2, "long")
        assert remote("", server).range(3).select(double("id")).collect()[2][0] == 4


def test_the_page_does_what_it_shows(connect_server: HudiServer, remote: Remote, tmp_path: Path) -> None:
    """A program of a user, in a process and folder of its own."""
    page = (Path(__file__).parents[2] / "docs/serve.md").read_text("utf-8")
    _, program = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    spark = remote()
    rows(spark, "create schema if not exists sales")
    rows(
        spark,
        "create or replace table sales.orders using hudi tblproperties (primaryKey = 'id') as select 1 id, 'paid' status",
    )
    found = subprocess.run(
        [sys.executable, "-c", program.replace(":15002", f":{connect_server.connect_port}")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert re.search(r"\b1\|\s+paid.*\b2\|\s+sent", found.stdout, re.DOTALL), (
        found.stderr[-2000:] + found.stdout
    )
    assert rows(spark, "select * from sales.orders order by id") == [(1, "paid"), (2, "sent")]


def test_a_port_that_is_taken_is_named(start_server: Start, connect_server: HudiServer) -> None:
    with pytest.raises(ConfigError, match="choose another --connect-port"):
        start_server(connect_port=connect_server.connect_port)


def test_the_port_is_off_unless_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    assert command_parser().parse_args([]).connect_port is None
    assert command_parser().parse_args(["--connect-port", "0"]).connect_port == 0
    with pytest.raises(ConfigError, match="connect-port is 70000"):
        check_options(ServerOptions(connect_port=70000))
    assert connect_line(ServerOptions(), 15002).endswith('.remote("sc://127.0.0.1:15002/").getOrCreate()')
    monkeypatch.setitem(sys.modules, "grpc_status", None)
    with pytest.raises(ConfigError, match=r"pip install 'dbt-hudi\[connect\]'"):
        check_options(ServerOptions(connect_port=0))
    monkeypatch.setattr(pyspark, "__version__", "3.5.9")
    with pytest.raises(ConfigError, match=r"needs PySpark 4.*PySpark 3\.5\.9"):
        check_options(ServerOptions(connect_port=0))


def _length(data: bytes) -> bytes:
    """Bytes behind their own length."""
    size, head = len(data), b""
    while size > 127:
        head, size = head + bytes([size & 127 | 128]), size >> 7
    return head + bytes([size]) + data


def _external_command() -> proto.Command:
    command = proto.Command()
    command.execute_external_command.runner = "com.example.Runner"
    return command

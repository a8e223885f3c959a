"""HiveServer2's protocol, spoken by PyHive and by its generated client."""

from __future__ import annotations

import datetime
import json
import random
import re
import socket
import struct
import threading
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.server.limits import ServerLimits
from hudi_engine.server.server import HudiServer
from pyhive import hive
from pyhive.exc import OperationalError
from TCLIService import ttypes
from thrift.protocol import TBinaryProtocol
from thrift.transport.TTransport import TTransportException

from dbt.adapters.hudi.serve.command import command_parser

Connect = Callable[..., hive.Connection]
Start = Callable[..., HudiServer]
LONG = "select count(*) from range(100000000000) where sqrt(id) < 0"


def rows(connection: hive.Connection, text: str) -> list[tuple[Any, ...]]:
    cursor = connection.cursor()
    cursor.execute(text)
    found: list[tuple[Any, ...]] = cursor.fetchall()
    cursor.close()
    return found


def reason(raised: pytest.ExceptionInfo[Exception]) -> ttypes.TStatus:
    return raised.value.args[0].status


class TestStatements:
    def test_tables_are_made_merged_and_read(self, connect: Connect) -> None:
        connection = connect(database="shop")
        rows(
            connection,
            "create table merged using hudi tblproperties (primaryKey = 'id') as select 1 id, 'a' v",
        )
        counts = rows(
            connection,
            "merge into merged t using (select 1 id, 'A' v union all select 2, 'b') s on t.id = s.id "
            "when matched then update set * when not matched then insert *",
        )
        assert counts == [(2, 1, 0, 1)]
        assert rows(connect(), "select id, v from shop.merged order by id") == [(1, "A"), (2, "b")]

    def test_every_type_and_null_comes_back(self, connect: Connect) -> None:
        spoken = {
            "true": ("BOOLEAN_TYPE", True),
            "1y": ("TINYINT_TYPE", 1),
            "-2s": ("SMALLINT_TYPE", -2),
            "3": ("INT_TYPE", 3),
            "-4l": ("BIGINT_TYPE", -4),
            "cast(0.5 as float)": ("FLOAT_TYPE", 0.5),
            "-1e300d": ("DOUBLE_TYPE", -1e300),
            "cast(-12.30 as decimal(38, 2))": ("DECIMAL_TYPE", Decimal("-12.30")),
            "'grün 🦉 \\0'": ("STRING_TYPE", "grün 🦉 \0"),
            "cast('ab' as binary)": ("BINARY_TYPE", b"ab"),
            "date'0001-02-03'": ("DATE_TYPE", "0001-02-03"),
            "timestamp'2026-01-02 03:04:05.6'": ("TIMESTAMP_TYPE", datetime.datetime(2026, 1, 2, 3, 4, 5, 600000)),
            "timestamp_ntz'2026-01-02 03:04:05'": ("TIMESTAMP_TYPE", datetime.datetime(2026, 1, 2, 3, 4, 5)),
            "interval '1-2' year to month": ("STRING_TYPE", "INTERVAL '1-2' YEAR TO MONTH"),
            "interval '3 04:05:06' day to second": ("STRING_TYPE", "INTERVAL '3 04:05:06' DAY TO SECOND"),
            "make_interval(1, 2)": ("STRING_TYPE", "1 years 2 months"),
        }  # fmt: skip
        nested = {
            "array(1, null)": ("ARRAY_TYPE", [1, None]),
            "map('k', 1.5d)": ("MAP_TYPE", {"k": 1.5}),
            "named_struct('a', 1, 'b', cast(null as string))": ("STRUCT_TYPE", {"a": 1, "b": None}),
            "parse_json('{\"v\": [1]}')": ("STRING_TYPE", {"v": [1]}),
        }
        cursor = connect().cursor()
        every = {**spoken, **nested}
        nulls = ", ".join(f"if(id = 1, null, {each}) c" for each in every)
        cursor.execute(f"select {nulls}, null c from range(3) order by id")
        assert [each[1] for each in cursor.description] == [
            *(kind for kind, _ in every.values()),
            "NULL_TYPE",
        ]
        first, second, third = cursor.fetchall()
        count = len(spoken)
        assert first[:count] == third[:count] == tuple(value for _, value in spoken.values())
        assert [json.loads(each) for each in first[count:-1]] == [value for _, value in nested.values()]
        assert second == (None,) * (len(every) + 1)

    def test_json_has_microseconds_and_map_keys_as_text(self, connect: Connect) -> None:
        connection = connect(configuration={"spark.sql.session.timeZone": "UTC"})
        text = (
            "select array(timestamp'2026-01-02 03:04:05.123456'), "
            "named_struct('a', timestamp_ntz'2026-01-02 03:04:05.000001'), "
            "array(map(date'2026-01-02', map(timestamp'2026-01-02 03:04:05.6', 1)))"
        )
        assert [json.loads(each) for each in rows(connection, text)[0]] == [
            ["2026-01-02T03:04:05.123456Z"],
            {"a": "2026-01-02T03:04:05.000001"},
            [{"2026-01-02": {"2026-01-02 03:04:05.6": 1}}],
        ]

    def test_bytes_that_are_no_utf8_are_shown_as_such(self, connect: Connect) -> None:
        connection = connect()
        text = "select if(id = 1, null, concat('ü', cast(x'ff' as string), id)) from range(3) order by id"
        assert rows(connection, text) == [("ü\ufffd0",), (None,), ("ü\ufffd2",)]
        assert rows(connection, "select cast(x'ff' as binary)") == [(b"\xff",)]

    def test_an_answer_is_no_longer_than_clients_take(self, connect: Connect, start_server: Start) -> None:
        assert ServerLimits().window_bytes <= 8 * 1024 * 1024
        server = start_server(limits=ServerLimits(window_bytes=1000))
        connection = hive.connect("127.0.0.1", server.port, auth="NOSASL")
        for text in ("select repeat('x', 100) from range(5000)", "select true from range(5000)"):
            request = ttypes.TFetchResultsReq(executed(connection, text), 0, 5000)
            (column,) = connection.client.FetchResults(request).results.columns
            values = column.stringVal.values if column.stringVal else column.boolVal.values
            assert 0 < len(values) <= 1000
        assert len(rows(connection, "select true from range(5000)")) == 5000

    def test_rows_come_in_windows(self, connect: Connect) -> None:
        cursor = connect().cursor(arraysize=300)
        cursor.execute(
            "select id, if(id % 3 = 0, null, id) n, repeat('x', cast(id % 7 as int)) t from range(1000)"
        )
        found = cursor.fetchall()
        assert found == [(n, n if n % 3 else None, "x" * (n % 7)) for n in range(1000)]

    def test_an_error_has_its_state_and_sentence(self, connect: Connect) -> None:
        connection = connect()
        with pytest.raises(OperationalError) as raised:
            rows(connection, "select * from shop.nothing")
        assert (reason(raised).sqlState, reason(raised).statusCode) == ("42P01", 3)
        assert (
            "[TABLE_OR_VIEW_NOT_FOUND] The table or view `shop`.`nothing` cannot be found"
            in reason(raised).errorMessage
        )
        rows(
            connection,
            "create table shop.refusing using hudi tblproperties (primaryKey = 'id') as select 1 id",
        )
        with pytest.raises(OperationalError, match="cannot rename a column"):
            rows(connection, "alter table shop.refusing rename column id to other")

    def test_sessions_share_no_views_and_settings(self, connect: Connect) -> None:
        one, other = connect(configuration={"spark.sql.shuffle.partitions": "7"}), connect()
        rows(one, "create temporary view mine as select 1 a")
        assert rows(one, "set spark.sql.shuffle.partitions")[0][1] == "7"
        assert rows(other, "set spark.sql.shuffle.partitions")[0][1] == "1"
        with pytest.raises(OperationalError, match="mine"):
            rows(other, "select * from mine")


class TestOperations:
    def test_a_statement_runs_while_its_client_does_other_things(self, connect: Connect) -> None:
        cursor = connect().cursor()
        cursor.execute("select 1 a", async_=True)
        assert cursor.poll().operationState == ttypes.TOperationState.FINISHED_STATE
        assert cursor.fetchall() == [(1,)]
        cursor.execute("select 1 / 0", async_=True)
        polled = cursor.poll()
        assert polled.operationState == ttypes.TOperationState.ERROR_STATE
        assert (polled.sqlState, "[DIVIDE_BY_ZERO]" in polled.errorMessage) == ("22012", True)

    def test_a_cancelled_statement_ends(self, start_server: Start) -> None:
        server = start_server(limits=ServerLimits(poll_s=0.1))
        cursor = hive.connect("127.0.0.1", server.port, auth="NOSASL").cursor()
        cursor.execute(LONG, async_=True)
        assert cursor.poll().operationState in (
            ttypes.TOperationState.RUNNING_STATE,
            ttypes.TOperationState.PENDING_STATE,
        )
        time.sleep(1)
        cursor.cancel()
        deadline = time.monotonic() + 30
        while cursor.poll().operationState == ttypes.TOperationState.RUNNING_STATE:
            assert time.monotonic() < deadline
        assert cursor.poll().operationState == ttypes.TOperationState.CANCELED_STATE
        assert cursor.poll().sqlState == "57014"

    def test_a_cancelled_write_leaves_no_half_commit(self, connect: Connect) -> None:
        connection = connect()
        rows(
            connection,
            "create table shop.undone using hudi tblproperties (primaryKey = 'id') as select 1L id",
        )
        cursor = connection.cursor()
        cursor.execute(
            "insert into shop.undone select id from range(100000000000) where sqrt(id) < 0 or id = 5",
            async_=True,
        )
        time.sleep(2)
        cursor.cancel()
        assert cursor.poll().operationState == ttypes.TOperationState.CANCELED_STATE
        assert rows(connection, "select id from shop.undone") == [(1,)]
        assert rows(connection, "insert into shop.undone values (6)") == [(1, 0, 0, 1)]

    def test_a_client_that_dies_ends_its_statement(self, start_server: Start) -> None:
        server = start_server()
        connection = hive.connect("127.0.0.1", server.port, auth="NOSASL")
        connection.cursor().execute(LONG, async_=True)
        assert len(server.sessions.running) == 1
        connection._transport.close()
        deadline = time.monotonic() + 30
        while server.sessions.running or server.sessions.count:
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def test_rows_are_fetched_again_from_the_first(self, connect: Connect) -> None:
        connection = connect()
        handle = executed(connection, "select id from range(3)")
        first = [fetched(connection, handle, orientation) for orientation in (0, 0, 4)]
        assert first == [[0, 1, 2], [], [0, 1, 2]]

    def test_unknown_handles_are_errors(self, connect: Connect) -> None:
        connection = connect()
        handle = executed(connection, "select 1")
        connection.client.CloseOperation(ttypes.TCloseOperationReq(handle))
        status = connection.client.FetchResults(ttypes.TFetchResultsReq(handle, 0, 10)).status
        assert (status.statusCode, status.sqlState) == (ttypes.TStatusCode.INVALID_HANDLE_STATUS, "24000")


def executed(connection: hive.Connection, text: str) -> ttypes.TOperationHandle:
    request = ttypes.TExecuteStatementReq(connection.sessionHandle, text)
    return connection.client.ExecuteStatement(request).operationHandle


def fetched(connection: hive.Connection, handle: ttypes.TOperationHandle, orientation: int) -> list[int]:
    request = ttypes.TFetchResultsReq(handle, orientation, 10)
    return list(connection.client.FetchResults(request).results.columns[0].i64Val.values)


class TestMetadata:
    @pytest.fixture
    def asked(self, connect: Connect) -> Callable[..., list[dict[str, Any]]]:
        connection = connect()
        rows(
            connection,
            "create table if not exists shop.orders (id bigint comment 'the key', at timestamp, amount decimal(9, 2)) "
            "using hudi tblproperties (primaryKey = 'id', type = 'mor') comment 'all of them'",
        )
        rows(connection, "create or replace view shop.late as select * from shop.orders")

        def ask(call: str, **arguments: Any) -> list[dict[str, Any]]:
            request = getattr(ttypes, f"T{call}Req")(sessionHandle=connection.sessionHandle, **arguments)
            answer = getattr(connection.client, call)(request)
            assert answer.status.statusCode == 0, answer.status
            cursor = connection.cursor()
            cursor._operationHandle, cursor._state = answer.operationHandle, cursor._STATE_RUNNING
            return [dict(zip([each[0] for each in cursor.description], row)) for row in cursor.fetchall()]

        return ask

    def test_schemas(self, asked: Callable[..., list[dict[str, Any]]]) -> None:
        assert {each["TABLE_SCHEM"] for each in asked("GetSchemas")} >= {"default", "shop"}
        assert [each["TABLE_SCHEM"] for each in asked("GetSchemas", schemaName="SH%")] == ["shop"]

    def test_tables(self, asked: Callable[..., list[dict[str, Any]]]) -> None:
        found = {
            each["TABLE_NAME"]: (each["TABLE_TYPE"], each["REMARKS"])
            for each in asked("GetTables", schemaName="shop", tableName="%")
        }
        assert found["orders"] == ("TABLE", "all of them")
        assert found["late"][0] == found["orders_ro"][0] == "VIEW"
        assert "orders__hudi_files" not in found
        tables = asked("GetTables", schemaName="shop", tableName="ord_rs%", tableTypes=["TABLE"])
        assert [each["TABLE_NAME"] for each in tables] == ["orders"]

    def test_columns(self, asked: Callable[..., list[dict[str, Any]]]) -> None:
        found = asked("GetColumns", schemaName="shop", tableName="orders")
        assert [
            (
                each["COLUMN_NAME"],
                each["TYPE_NAME"],
                each["DATA_TYPE"],
                each["COLUMN_SIZE"],
                each["DECIMAL_DIGITS"],
            )
            for each in found
        ] == [
            ("id", "BIGINT", -5, 19, 0),
            ("at", "TIMESTAMP", 93, 29, None),
            ("amount", "DECIMAL(9,2)", 3, 9, 2),
        ]
        assert found[0]["REMARKS"] == "the key"

    def test_the_record_key_is_the_primary_key(self, asked: Callable[..., list[dict[str, Any]]]) -> None:
        (key,) = asked("GetPrimaryKeys", schemaName="shop", tableName="orders")
        assert (key["COLUMN_NAME"], key["KEY_SEQ"]) == ("id", 1)

    def test_types_functions_and_the_rest(self, asked: Callable[..., list[dict[str, Any]]]) -> None:
        assert {each["TYPE_NAME"] for each in asked("GetTypeInfo")} >= {
            "BIGINT",
            "DECIMAL",
            "MAP",
            "TIMESTAMP",
        }
        assert [each["FUNCTION_NAME"] for each in asked("GetFunctions", functionName="row_numb%")] == [
            "row_number"
        ]
        assert [each["TABLE_TYPE"] for each in asked("GetTableTypes")] == ["TABLE", "VIEW"]
        assert asked("GetCatalogs") == []
        assert asked("GetCrossReference") == []

    def test_the_server_names_itself(self, connect: Connect) -> None:
        connection = connect()
        ask = ttypes.TGetInfoReq(connection.sessionHandle, ttypes.TGetInfoType.CLI_DBMS_NAME)
        assert connection.client.GetInfo(ask).infoValue.stringValue == "Spark SQL"


class TestLimits:
    def test_sessions_and_statements_have_limits(self, start_server: Start) -> None:
        server = start_server(limits=ServerLimits(sessions=1, statement_bytes=100, idle_s=1.5))
        connection = hive.connect("127.0.0.1", server.port, auth="NOSASL")
        with pytest.raises(OperationalError, match="max-statement-bytes"):
            rows(connection, f"select '{'x' * 200}'")
        with pytest.raises(OperationalError, match="max-sessions"):
            hive.connect("127.0.0.1", server.port, auth="NOSASL")
        time.sleep(4)
        with pytest.raises(OperationalError, match="idle for too long"):
            rows(connection, "select 1")

    def test_code_of_clients_is_rejected(self, connect: Connect, start_server: Start) -> None:
        connection = connect()
        for text in (
            "add jar '/tmp/a.jar'",
            "/* x */ ADD\nFILES '/tmp/a'",
            "create temporary function f as 'com.example.F' using jar '/tmp/a.jar'",
            "create function shop.`return` as 'com.example.F'",
            "select transform(a) using 'cat' from (select 1 a)",
            "select transform(a) using r'cat' from (select 1 a)",
            "select `reflect` /**/ ('java.lang.System', 'getenv')",
            "select java_method('java.lang.Math', 'abs', -1) -- x\radd jar b",
            "begin add jar '/tmp/a.jar'; end",
            "execute immediate 'add jar b'",
            "create temporary view v using jdbc options (url 'jdbc:derby:memory:x;create=true', dbtable 'a')",
            "select 1; create temporary view v USING /**/ `org.apache.spark.sql.jdbc` options (url 'u')",
            "create table shop.t using org.apache.spark.sql.execution.datasources.jdbc.JdbcRelationProvider",
            "insert overwrite directory using jdbc options (url 'u') select 1",
            "create table shop.t (a int) using ${spark.format}",
            "select * from `jdbc`.`jdbc:derby:memory:x`",
            "create table shop.t (a int) using com.example.Source",
            "set spark.sql.catalog.x = com.example.Catalog",
            "SET `spark.sql.Sources.commitProtocolClass`=com.example.Protocol",
            "set spark.sql.sources.default=jdbc",
            "set fs.x.impl=com.example.FileSystem",
            "select identifier('reflect')('java.lang.System', 'getenv')",
            "select IDENTIFIER /**/ ('ref' || 'lect')('java.lang.System', 'getenv')",
            "call run_clustering(table => 't', predicate => \"p = reflect/**/('java.lang.System', 'getenv')\")",
            "call run_clustering(table => 't', predicate => 'p = \\u0072eflect(1)')",
        ):
            with pytest.raises(OperationalError, match="--allow-code"):
                rows(connection, text)
        assert rows(
            connection, "select transform(array(1), x -> x + 1) using_it, 'add jar reflect(' text"
        ) == [("[2]", "add jar reflect(")]
        rows(
            connection,
            "create table shop.csvs using csv as select a from (select 1 a) join (select 1 a) using (a)",
        )
        rows(connection, "set spark.sql.shuffle.partitions=1")
        with pytest.raises(OperationalError, match="--conf spark.sql.catalog.x="):
            connect(configuration={"spark.sql.catalog.x": "com.example.Catalog"})
        allowed = start_server(limits=ServerLimits(allow_code=True))
        connection = hive.connect("127.0.0.1", allowed.port, auth="NOSASL")
        assert rows(connection, "select java_method('java.lang.Math', 'abs', -1)") == [("1",)]
        rows(connection, "set spark.sql.catalog.x=com.example.Catalog")


def test_a_row_beyond_the_limit_of_thrift_in_python_is_read_with_another_limit(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "select repeat('x', 17000000) long"
    with pytest.raises(TTransportException, match="16384000"):
        cursor = connect().cursor()
        cursor.execute(text)
        cursor.fetchall()
    monkeypatch.setattr(TBinaryProtocol, "DEFAULT_STRING_LENGTH_LIMIT", None)
    cursor = connect().cursor()
    cursor.execute(text)
    assert cursor.fetchall() == [("x" * 17_000_000,)]


def test_any_bytes_leave_the_server_up(server: HudiServer, connect: Connect) -> None:
    chance = random.Random(5)
    valid = opening_bytes()
    threads = [thread.name for thread in threading.enumerate()].count("client")
    for turn in range(120):
        if turn % 3 == 0:
            sent = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 200)))
        else:
            changed = bytearray(valid)
            for _ in range(chance.randrange(1, 6)):
                changed[chance.randrange(len(changed))] = chance.choice((0, 1, 11, 12, 13, 15, 0x7F, 0xFF))
            sent = bytes(changed[: chance.randrange(1, len(changed) + 1)])
        if turn % 3 == 2:
            sent = b"\x01" + struct.pack("!I", 5) + b"PLAIN\x05" + struct.pack("!I", 4) + b"\0u\0p" + sent
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            client.settimeout(10)
            while client.recv(65536):
                pass
    assert rows(connect(), "select 1") == [(1,)]
    deadline = time.monotonic() + 10
    while [thread.name for thread in threading.enumerate()].count("client") > threads + 1:
        assert time.monotonic() < deadline


def opening_bytes() -> bytes:
    from TCLIService import TCLIService
    from thrift.protocol.TBinaryProtocol import TBinaryProtocol
    from thrift.transport.TTransport import TMemoryBuffer

    buffer = TMemoryBuffer()
    request = ttypes.TOpenSessionReq(client_protocol=5, configuration={"a": "b"}, username="fuzz")
    TCLIService.Client(TBinaryProtocol(buffer)).send_OpenSession(request)
    sent: bytes = buffer.getvalue()
    return sent


def test_the_page_does_what_it_shows(server: HudiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs/serve.md").read_text("utf-8")
    program, _ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    connect = hive.connect
    monkeypatch.setattr(hive, "connect", lambda host, _, **options: connect(host, server.port, **options))
    found: dict[str, Any] = {}
    exec(program, found)  # noqa: S102
    assert found["rows"] == [(1, "paid")]


def test_the_page_names_every_option() -> None:
    page = (Path(__file__).parents[2] / "docs/serve.md").read_text("utf-8")
    options = {
        each
        for action in command_parser()._actions
        for each in action.option_strings
        if each.startswith("--")
    }
    assert options - {"--help"} == set(re.findall(r"`(--[\w-]+)", page.partition("## Guarantees")[0]))

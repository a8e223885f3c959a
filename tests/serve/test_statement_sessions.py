"""The statements of one client: a statement in, Arrow out."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.errors import StatementError
from hudi_engine.spark.sql.failure import failure_of
from hudi_engine.spark.sql.jobs import JobGroup
from hudi_engine.spark.sql.session import Rows, StatementSession

Open = Callable[..., StatementSession]
_NUMBERS = itertools.count()


def rows(session: StatementSession, text: str) -> list[tuple[Any, ...]]:
    return [tuple(each.values()) for each in result(session, text).table.to_pylist()]


def result(session: StatementSession, text: str) -> Rows:
    return session.run(text, JobGroup(f"test-{next(_NUMBERS)}"))


def table(session: StatementSession, name: str, *options: str) -> str:
    given = ", ".join(("primaryKey = 'id'", *options))
    result(
        session,
        f"create or replace table shop.{name} using hudi tblproperties ({given}) as "
        "select 1 id, 'a' v union all select 2, 'b'",
    )
    return f"shop.{name}"


def test_rows_come_as_arrow_with_the_types_of_spark(open_session: Open) -> None:
    found = result(open_session(), "select 1 a, cast(1.5 as decimal(5, 2)) b; select 2 c, null d")
    assert found.schema.simpleString() == "struct<c:int,d:void>"
    assert found.table.to_pylist() == [{"c": 2, "d": None}]
    assert result(open_session(), "select id from range(10)").window(8, 5).to_pylist() == [
        {"id": 8},
        {"id": 9},
    ]


@pytest.mark.parametrize(
    "text",
    [
        "select sum(id) from range(3) where id > 5 group by id",
        "select 1 a, 2 a where false",
        "select count(*), id `order id`, interval '1' day from range(3) group by id limit 0",
    ],
)
def test_a_result_without_rows_has_columns_of_any_names(open_session: Open, text: str) -> None:
    assert result(open_session(), text).table.num_rows == 0


def test_a_schema_in_a_folder_of_other_files_is_not_dropped(open_session: Open, tmp_path: Path) -> None:
    session, kept = open_session(), tmp_path / "kept.txt"
    kept.write_text("kept")
    result(session, f"create schema elsewhere location '{tmp_path}'")
    with pytest.raises(Exception, match="which is not empty"):
        result(session, "drop schema elsewhere cascade")
    assert kept.read_text() == "kept"


def test_writes_return_their_counts(open_session: Open) -> None:
    session = open_session()
    name = table(session, "counted")
    merged = result(
        session,
        f"merge into {name} t using (select 2 id, 'B' v union all select 3, 'c') s on t.id = s.id "
        "when matched then update set * when not matched then insert *",
    )
    assert merged.table.to_pylist() == [
        {"num_affected_rows": 2, "num_updated_rows": 1, "num_deleted_rows": 0, "num_inserted_rows": 1}
    ]
    assert rows(open_session(), f"select id, v from {name} order by id") == [(1, "a"), (2, "B"), (3, "c")]


def test_sessions_share_tables_and_nothing_else(open_session: Open) -> None:
    one, other = open_session(), open_session()
    name = table(one, "shared")
    result(one, "create temporary view mine as select 1 a")
    result(one, "use shop")
    result(one, "set hudi.test = of one")
    assert rows(one, "select count(*) from shared join mine") == [(2,)]
    assert rows(other, f"select count(*) from {name}") == [(2,)]
    assert rows(other, "select current_schema()") == [("default",)]
    assert rows(other, "set hudi.test") == [("hudi.test", "<undefined>")]
    with pytest.raises(Exception, match="mine"):
        result(other, "select * from mine")


def test_errors_carry_their_sql_state_and_sentence(open_session: Open) -> None:
    session = open_session()
    name = table(session, "failing")
    for text, state, sentence in (
        ("select * from shop.nothing", "42P01", "[TABLE_OR_VIEW_NOT_FOUND]"),
        ("selec 1", "42601", "[PARSE_SYNTAX_ERROR]"),
        (f"alter table {name} rename column v to w", "42000", "cannot rename a column"),
        (f"create table {name} using hudi as select 1 id", "42P07", "drop it first"),
    ):
        with pytest.raises(Exception) as raised:  # noqa: PT011
            result(session, text)
        failure = failure_of(raised.value)
        assert failure.sqlstate == state, failure
        assert sentence in failure.message
        assert "\tat " not in failure.message


def test_a_cancelled_statement_ends(open_session: Open) -> None:
    session, jobs = open_session(), JobGroup("cancelled")
    timer = threading.Timer(1.0, jobs.cancel, ["enough"])
    timer.start()
    began = time.monotonic()
    with pytest.raises(Exception, match="cancel"):
        session.run("select count(*) from range(100000000000) where sqrt(id) < 0", jobs)
    jobs.close()
    assert time.monotonic() - began < 30
    assert rows(session, "select 1 a") == [(1,)]


def test_hudi_tables_are_listed_as_such(open_session: Open) -> None:
    session = open_session()
    for name in (table(session, "plain"), table(session, "logged", "type = 'mor'")):
        ((schema, _, temporary, text),) = rows(session, f"show table extended in shop like '{name[5:]}'")
        assert (schema, temporary) == ("shop", False)
        assert "Provider: hudi\n" in text and "Type: EXTERNAL\n" in text and " |-- id: " in text, text
        described = dict(each[:2] for each in rows(session, f"describe extended {name}"))
        assert (described["Provider"], described["Type"]) == ("hudi", "EXTERNAL")
    result(session, "create temporary view passing as select 1 a")
    listed = [each[1] for each in rows(session, "show tables in shop")]
    assert {"plain", "logged", "logged_ro", "logged_rt", "passing"} <= set(listed)
    assert not [each for each in listed if each.endswith("__hudi_files")]


class TestDropThenCreate:
    def test_readers_never_miss_the_table(self, open_session: Open) -> None:
        session, reader = open_session(hold_drops_s=60), open_session()
        name = table(session, "rebuilt")
        result(session, f"/* dbt */ drop table if exists {name}")
        assert rows(reader, f"select count(*) from {name}") == [(2,)]
        result(session, f"/* dbt */ create table {name} using hudi as select 7 id, 'x' v, 1 more")
        assert rows(reader, f"select * from {name}") == [(7, "x", 1)]

    def test_the_session_notices_its_drop(self, open_session: Open) -> None:
        session = open_session(hold_drops_s=60)
        name = table(session, "noticed")
        result(session, f"drop table {name}")
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            result(session, f"select * from {name}")
        table(session, "noticed", "type = 'mor'")
        result(session, f"drop table {name}")
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            result(session, f"select * from {name}_ro")
        table(session, "noticed")
        result(session, f"drop table {name}")
        assert "noticed" not in [each[1] for each in rows(session, "show tables in shop")]

    def test_a_limit_and_the_end_carry_it_out(self, open_session: Open) -> None:
        session, reader = open_session(hold_drops_s=0.5), open_session()
        listed = "show tables in shop like 'limited'"
        name = table(session, "limited")
        result(session, f"drop table {name}")
        assert rows(reader, listed)
        time.sleep(2)
        assert not rows(reader, listed)
        late = open_session(hold_drops_s=60)
        table(late, "limited")
        result(late, f"drop table {name}")
        late.close()
        assert not rows(reader, listed)

    def test_a_failed_create_keeps_the_table(self, open_session: Open) -> None:
        session = open_session(hold_drops_s=60)
        name = table(session, "kept")
        result(session, f"drop table {name}")
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            result(session, f"create table {name} using hudi as select 1 div 0 id")
        assert rows(session, f"select count(*) from {name}") == [(2,)]

    def test_a_failed_create_if_not_exists_keeps_it_too(self, open_session: Open) -> None:
        session, reader = open_session(hold_drops_s=60), open_session()
        name = table(session, "kept_if")
        result(session, f"drop table {name}")
        create = f"create /* dbt */ table if not exists {name} using hudi as select"
        with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
            result(session, f"{create} 1 id from (")
        assert rows(reader, f"select count(*) from {name}") == [(2,)]
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            result(session, f"{create} 1 div 0 id")
        assert rows(reader, f"select count(*) from {name}") == [(2,)]
        result(session, f"drop table {name}")
        result(session, f"{create} 7 id")
        assert rows(reader, f"select * from {name}") == [(7,)]

    def test_the_table_that_was_dropped_goes_whatever_the_schema_is_by_then(self, open_session: Open) -> None:
        session, reader = open_session(hold_drops_s=60), open_session()
        table(session, "moved")
        result(session, "create schema other")
        result(session, "create table other.moved using hudi as select 1 id")
        result(session, "use shop; drop table moved; use other")
        session.close()
        assert rows(reader, "select count(*) from other.moved") == [(1,)]
        assert not rows(reader, "show tables in shop like 'moved'")

    def test_a_table_that_changed_meanwhile_stays(self, open_session: Open) -> None:
        session, reader = open_session(hold_drops_s=60), open_session()
        # a session with holds of its own stands for another process
        process = open_session(holds={})
        name = table(session, "changed")
        result(session, f"drop table {name}")
        result(process, f"insert into {name} values (3, 'c')")
        session.close()
        assert rows(reader, f"select count(*) from {name}") == [(3,)]
        result(session, f"drop table {name}")
        result(process, f"create or replace table {name} using hudi as select 4 id")
        with pytest.raises(Exception, match="drop it first"):
            result(session, f"create table {name} using hudi as select 5 id")
        assert rows(reader, f"select * from {name}") == [(4,)]

    def test_other_sessions_write_to_no_table_whose_drop_is_held(self, open_session: Open) -> None:
        session, other = open_session(hold_drops_s=60), open_session()
        name = table(session, "written")
        result(session, f"drop table {name}")
        result(other, f"with old as (select * from {name}) select * from old -- {name}")
        result(other, f"create or replace table shop.copied using hudi as select * from {name}")
        assert rows(other, "select count(*) from shop.copied") == [(2,)]
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            result(other, f"insert into {name} values (3, 'c')")
        create = f"create table if not exists {name} using hudi as select"
        table(session, "written")
        result(session, f"drop table {name}")
        result(other, f"{create} 8 id")
        result(other, f"insert into {name} values (9)")
        result(session, f"{create} 7 id")
        session.close()
        assert rows(other, f"select id from {name} order by id") == [(8,), (9,)]

    @pytest.mark.parametrize(
        ("stem", "change"),
        [
            ("to_rename", "alter table {} rename to shop.renamed"),
            ("to_drop", "drop table {}"),
            ("to_merge", "merge into {} t using (select 1 id) s on t.id = s.id when matched then delete"),
            ("to_delete", "use shop; delete from to_delete where id = 1"),
            ("to_call", "call show_commits(table => '{}')"),
            ("by_text", "insert into identifier('{}') values (3, 'c')"),
            ("with_rows", "with new as (select 3 id, 'c' v) insert into {} select * from new"),
        ],
    )
    def test_other_sessions_find_no_table_to_change(self, open_session: Open, stem: str, change: str) -> None:
        session, other = open_session(hold_drops_s=60), open_session()
        name = table(session, stem)
        result(session, f"drop table {name}")
        with pytest.raises(Exception, match=r"TABLE_OR_VIEW_NOT_FOUND|is not a Hudi table"):
            result(other, change.format(name))
        assert not rows(other, f"show tables in shop like '{stem}'")

    def test_letters_of_the_name_and_a_second_drop_leave_it_held(self, open_session: Open) -> None:
        session, reader = open_session(hold_drops_s=60), open_session()
        name = table(session, "at")
        result(session, f"drop table {name}")
        result(session, "select 1 as data /* model.shop.at */")
        result(session, f"drop table if exists {name}")
        assert rows(reader, f"select count(*) from {name}") == [(2,)]
        with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
            result(session, f"drop table {name}")
        assert not rows(reader, "show tables in shop like 'at'")

    def test_drops_of_other_formats_are_not_held(self, open_session: Open) -> None:
        session, reader = open_session(hold_drops_s=60), open_session()
        result(session, "create table shop.files using parquet as select 1 id")
        result(session, "drop table shop.files")
        assert not rows(reader, "show tables in shop like 'files'")


def test_an_empty_text_is_an_error(open_session: Open) -> None:
    with pytest.raises(StatementError, match="no statement"):
        result(open_session(), " -- nothing\n;")

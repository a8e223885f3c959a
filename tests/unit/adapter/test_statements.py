"""Splitting SQL text into statements."""

from __future__ import annotations

import pytest
from hudi_engine.spark.sql.statements import (
    clause_after,
    first_keyword,
    split_outside,
    split_statements,
    without_leading_dot,
)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select 1", ["select 1"]),
        ("select 1;", ["select 1"]),
        (
            "insert into t select 1; insert into t select 2",
            ["insert into t select 1", "insert into t select 2"],
        ),
        ("select ';' as a; select 2", ["select ';' as a", "select 2"]),
        ("select 'it\\'s; fine'", ["select 'it\\'s; fine'"]),
        ("select `a;b` from t", ["select `a;b` from t"]),
        ("select 1 -- one; two\n; select 2", ["select 1 -- one; two", "select 2"]),
        ("select /* a; /* nested; */ b; */ 1; select 2", ["select /* a; /* nested; */ b; */ 1", "select 2"]),
        ("select r'a\\'; select 2", ["select r'a\\'", "select 2"]),
        (" ; ;\n-- nothing\n;", []),
        ("", []),
    ],
)
def test_semicolons_inside_quotes_and_comments_do_not_split(sql: str, expected: list[str]) -> None:
    assert split_statements(sql) == expected


@pytest.mark.parametrize(
    ("sql", "keyword"),
    [
        ('/* {"app": "dbt"} */\nDELETE from t', "delete"),
        ("-- why\n  Merge into t using s", "merge"),
        ("(select 1)", "select"),
        ("'text'", ""),
        ("", ""),
        # a carriage return ends a comment, and a backslash has it go on
        ("--\rdrop table t /*\n select 1*/", "drop"),
        ("-- a \\\n drop table t\nselect 1", "select"),
    ],
)
def test_the_first_keyword_is_found_past_comments_and_brackets(sql: str, keyword: str) -> None:
    assert first_keyword(sql) == keyword


def test_clauses_are_found_outside_brackets_and_quotes() -> None:
    sql = "update t set a = (select max(x) from u where y = 1), b = 'where' where t.set > 1 and id in (select 1 where true)"
    start, end = clause_after(sql, "set") or (0, 0)
    assert [sql[s:e].strip() for s, e in split_outside(sql, start, end, ",")] == [
        "a = (select max(x) from u where y = 1)",
        "b = 'where'",
    ]
    start, end = clause_after(sql, "where") or (0, 0)
    assert sql[start:end].strip() == "t.set > 1 and id in (select 1 where true)"
    assert clause_after("delete from t", "where") is None


def test_the_dot_of_an_empty_database_goes_and_no_other() -> None:
    sql = "select '. .names' from\n .names.t, a.names.u -- .names"
    assert without_leading_dot(sql, "names") == "select '. .names' from\n  names.t, a.names.u -- .names"

"""CALL of a procedure: what it is given arrives as it was meant."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest
from hudi_engine.errors import ConfigError, StatementError
from hudi_engine.spark.sql import procedures

POSITIONS = ("table", "predicate", "limit")


def using(catalog: str) -> MagicMock:
    """Return a session that uses a catalog; beside Spark's own ``ice`` is set up."""
    session = MagicMock()
    session.conf.get = {"spark.sql.catalog.ice": "x", "spark.sql.catalog.spark_catalog": "y"}.get
    session.catalog.currentCatalog.return_value = catalog
    return session


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("\"day > '2024-01-01'\"", "day > '2024-01-01'"),
        ("'name = \"a\"'", 'name = "a"'),
        ("'it''s, a'", "it's, a"),
        ('"say ""so"""', 'say "so"'),
        (r"'it\'s'", "it's"),
        (r"'\\d+\n'", "\\d+\n"),
        ("''", ""),
        ("5", "5"),
        ("a.b", "a.b"),
    ],
)
@pytest.mark.parametrize("call", ["predicate => {}, limit => 1", "'t', {}, 1"])
def test_a_text_loses_the_quotes_around_it_and_the_escapes_within(call: str, text: str, value: str) -> None:
    given = procedures.given_arguments("p", call.format(text), POSITIONS)
    assert (given["predicate"], given["limit"]) == (value, "1")


@pytest.mark.parametrize("text", ["limit => 5 '6'", "'a' 'b'", "predicate => 'x' or 'y'", "predicate => "])
def test_what_is_no_argument_is_refused(text: str) -> None:
    with pytest.raises(StatementError, match="write name => value, with quotes around a text"):
        procedures.given_arguments("p", text, POSITIONS)


@pytest.mark.parametrize(
    ("name", "is_sparks"),
    [
        ("ice.system.help", True),
        ("`ice` . system.help", True),
        ("help", False),
        ("system.help", False),
        ("spark_catalog.system.help", False),
    ],
)
def test_a_procedure_of_another_catalog_is_left_to_spark(name: str, is_sparks: bool) -> None:
    done = procedures.call(MagicMock(), using("spark_catalog"), f"call {name}()")
    assert (done is None) is is_sparks


@pytest.mark.parametrize(
    ("name", "used", "is_sparks"),
    [
        ("system.expire_snapshots", "ice", True),
        ("expire_snapshots", "ice", True),
        ("system.help", "ice", False),
        ("Help", "ice", False),
    ],
)
def test_a_procedure_that_is_unknown_here_is_left_to_the_catalog_that_is_used(
    name: str, used: str, is_sparks: bool
) -> None:
    done = procedures.call(MagicMock(), using(used), f"call {name}()")
    assert (done is None) is is_sparks


@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("system.expire_snapshots", "spark_catalog"),
        ("expire_snapshots", "spark_catalog"),
        ("spark_catalog.system.expire_snapshots", "ice"),
    ],
)
def test_an_unknown_procedure_of_sparks_own_catalog_is_refused(name: str, used: str) -> None:
    with pytest.raises(ConfigError, match="there is no procedure 'expire_snapshots'"):
        procedures.call(MagicMock(), using(used), f"call {name}(table => 'a.b')")


def test_a_procedure_that_is_known_here_names_a_table_of_sparks_own_catalog() -> None:
    with pytest.raises(StatementError, match="a.b is a table of another catalog"):
        procedures.call(MagicMock(), using("ice"), "call system.run_clean(table => 'a.b')")


@pytest.mark.parametrize("behind", ["", " -- all of it (now)", "\n/* why; */ "])
def test_a_comment_may_follow_a_call(monkeypatch: pytest.MonkeyPatch, behind: str) -> None:
    told: list[Any] = []
    monkeypatch.setattr(procedures, "help_text", lambda cmd: told.append(cmd) or "")
    session = MagicMock()
    session.conf.get = {}.get
    procedures.call(MagicMock(), session, f"call help(cmd => 'run_clean'){behind}")
    assert told == ["run_clean"]


def test_comments_between_arguments_are_none() -> None:
    text = "'t', /* which */ predicate => 'x' -- all of it\n, -- so many\n limit => 5 /* rows */"
    assert procedures.given_arguments("p", text, POSITIONS) == {"table": "t", "predicate": "x", "limit": "5"}


def test_a_path_in_the_place_of_a_table_is_said_to_be_none() -> None:
    with pytest.raises(StatementError, match="needs table => 'schema.table'; a path alone is not taken"):
        procedures.call(
            MagicMock(), using("spark_catalog"), "call run_compaction(op => 'schedule', path => '/t')"
        )


@pytest.mark.parametrize(
    ("current", "there", "found"),
    [
        ("default", {}, "analytics"),
        ("default", {"default"}, "default"),
        ("other", {"other"}, "other"),
        ("other", {}, None),
    ],
)
def test_a_table_without_a_schema_is_of_the_targets_where_sparks_default_has_none_such(
    current: str, there: set[str], found: str | None
) -> None:
    session, warehouse = using("spark_catalog"), MagicMock(target_schema="analytics")
    session.catalog.currentDatabase.return_value = current
    known = {"analytics", *there}
    warehouse.entry = lambda _, schema, name: "an entry" if schema in known else None
    warehouse.hudi_base = lambda _, schema, name: "/t" if schema in known else None
    if found is None:
        with pytest.raises(StatementError, match="other.orders is not a Hudi table"):
            procedures.call(warehouse, session, "call show_commits(table => 'orders')")
        return
    warehouse.require_table.side_effect = LookupError
    with pytest.raises(LookupError):
        procedures.call(warehouse, session, "call show_commits(table => 'orders')")
    warehouse.require_table.assert_called_once_with(session, found, "orders")


def test_an_unknown_table_without_a_schema_is_told_to_name_one() -> None:
    session, warehouse = using("spark_catalog"), MagicMock()
    session.catalog.currentDatabase.return_value = "default"
    warehouse.hudi_base.return_value = None
    with pytest.raises(
        StatementError, match=r"default\.orders is not a .* the target's; write table => 'schema\.orders'"
    ):
        procedures.call(warehouse, session, "call run_clean(table => 'orders')")

from __future__ import annotations

import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.spark.catalog.sql_text import TableName, identifier, literal


def test_backticks_in_names_are_doubled():
    assert identifier("a`b") == "`a``b`"
    assert TableName("my db", "t`1").sql == "`my db`.`t``1`"


def test_a_literal_cannot_end_early_or_be_substituted():
    assert literal("it's") == r"'it\'s'"
    assert literal("\\' drop") == r"'\\\' drop'"
    assert literal("${env:HOME}") == r"'$\{env:HOME}'"
    assert literal("a\nb") == r"'a\nb'"


@pytest.mark.parametrize(
    ("text", "database", "name"),
    [
        ("db.t", "db", "t"),
        ("`db`.`t`", "db", "t"),
        ("`my.db`.`t``1`", "my.db", "t`1"),
        ("spark_catalog.db.t", "db", "t"),
    ],
)
def test_names_are_split_at_dots_outside_backticks(text, database, name):
    assert TableName.parse(text) == TableName(database, name)


@pytest.mark.parametrize("text", ["t", "", "a.b.c", ".t", "db."])
def test_what_is_not_schema_and_table_is_refused(text):
    with pytest.raises(ConfigError):
        TableName.parse(text)


def test_an_empty_name_is_refused():
    with pytest.raises(ConfigError, match="empty"):
        identifier("")

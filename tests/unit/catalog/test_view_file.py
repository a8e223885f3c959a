"""Kept definitions of views: read as they were written, or refused by name."""

from __future__ import annotations

import json

import pytest
from hudi_engine.errors import CorruptTableError
from hudi_engine.spark.catalog.kept import ViewDefinition
from hudi_engine.spark.catalog.sql_text import TableName

NAME = TableName("sales", "v")
ZONE = {"spark.sql.session.timeZone": "UTC"}
VIEW = ViewDefinition(
    NAME, (("id", "key"),), "select 1 as id", "all", {"owner": "me"}, "sales", ("id",), ZONE, "BINDING"
)


def test_a_definition_reads_back_as_it_was_written():
    assert ViewDefinition.from_json(NAME, VIEW.to_json(), "v.view.json") == VIEW


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": 5},
        {"columns": [{"name": 5, "comment": ""}]},
        {"columns": [{"name": "id", "comment": None}]},
        {"columns": ["id"]},
        {"query": None},
        {"query": ["select 1"]},
        {"comment": None},
        {"properties": {"owner": 5}},
        {"properties": [["owner", "me"]]},
        {"database": 5},
        {"selects": [5]},
        {"selects": 5},
        {"settings": 5},
        {"settings": {"spark.sql.ansi.enabled": True}},
        {"schemaMode": 5},
        {"schemaMode": "BINDING AS SELECT 1 --"},
    ],
)
def test_a_definition_of_wrong_types_is_damaged(changes):
    body = json.dumps({**json.loads(VIEW.to_json()), **changes}).encode()
    with pytest.raises(CorruptTableError, match="v.view.json is no readable view definition"):
        ViewDefinition.from_json(NAME, body, "v.view.json")


def test_a_definition_of_an_earlier_release_says_no_settings():
    body = {key: value for key, value in json.loads(VIEW.to_json()).items() if key != "settings"}
    assert ViewDefinition.from_json(NAME, json.dumps(body).encode(), "v.view.json").settings == {}


@pytest.mark.parametrize("name", ["hoodie.base.path", "hoodie.catalog.role"])
def test_a_definition_that_says_it_is_a_table_is_damaged(name):
    body = json.dumps({**json.loads(VIEW.to_json()), "properties": {name: "file:/another"}}).encode()
    with pytest.raises(CorruptTableError, match=f"{name} are those of a table"):
        ViewDefinition.from_json(NAME, body, "v.view.json")

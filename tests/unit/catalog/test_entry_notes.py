from __future__ import annotations

import json

import pytest
from hudi_engine.errors import ConfigError, CorruptTableError
from hudi_engine.format.storage import open_storage
from hudi_engine.spark.catalog.entry import NOTES_PATH, EntryNotes


def test_notes_survive_and_none_keeps_what_was_there(tmp_path):
    storage = open_storage(str(tmp_path))
    assert EntryNotes.load(storage) == EntryNotes()
    notes = EntryNotes().with_changes("ünï", {"id": "key", "v": ""}, {"owner team": "x"})
    notes.save(storage)
    assert EntryNotes.load(storage) == EntryNotes("ünï", {"id": "key"}, {"owner team": "x"})
    assert EntryNotes.load(storage).with_changes(None, None, None) == notes
    assert notes.with_changes("", {}, {}) == EntryNotes()


@pytest.mark.parametrize("name", ["provider", "Location", "hoodie.catalog.role"])
def test_properties_that_are_not_the_users_to_set_are_refused(name):
    with pytest.raises(ConfigError, match=name):
        EntryNotes().with_changes(None, None, {name: "x", "fine": "y"})


def test_damaged_notes_are_named(tmp_path):
    storage = open_storage(str(tmp_path))
    storage.create(NOTES_PATH, b"{")
    with pytest.raises(CorruptTableError, match="entry.json"):
        EntryNotes.load(storage)


@pytest.mark.parametrize("name", ["hoodie.catalog.role", "hoodie.catalog.foreign", "provider"])
def test_kept_properties_that_are_not_the_users_to_set_are_refused_too(tmp_path, name):
    storage = open_storage(str(tmp_path))
    kept = {"comment": "", "columnComments": {}, "properties": {name: "x"}}
    storage.create(NOTES_PATH, json.dumps(kept).encode())
    with pytest.raises(CorruptTableError, match=f"entry.json.*{name}"):
        EntryNotes.load(storage)


@pytest.mark.parametrize(
    "changes",
    [
        {"comment": 5},
        {"comment": None},
        {"columnComments": ["id"]},
        {"columnComments": {"id": ["key"]}},
        {"properties": {"owner": 5}},
        {"properties": [["owner", "me"]]},
    ],
)
def test_notes_of_wrong_types_are_damaged(tmp_path, changes):
    storage = open_storage(str(tmp_path))
    kept = {"comment": "", "columnComments": {}, "properties": {}, **changes}
    storage.create(NOTES_PATH, json.dumps(kept).encode())
    with pytest.raises(CorruptTableError, match="entry.json cannot be parsed.*delete it"):
        EntryNotes.load(storage)

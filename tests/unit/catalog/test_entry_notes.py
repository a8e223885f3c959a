from __future__ import annotations

import pytest
from hudi_engine.catalog.entry_notes import NOTES_PATH, EntryNotes
from hudi_engine.errors import ConfigError, CorruptTableError
from hudi_engine.storage import open_storage


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

"""What is said of columns goes with them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.spark.catalog.entry import NOTES_PATH, EntryNotes
from hudi_engine.spark.sql.not_null import NOT_NULL, forget_columns


@pytest.mark.parametrize(("gone", "left"), [(["NAME"], {NOT_NULL: "id"}), (["id", "name"], {})])
def test_a_column_that_has_gone_leaves_neither_its_comment_nor_that_it_must_not_be_null(
    tmp_path: Path, gone: list[str], left: dict[str, str]
) -> None:
    table: Any = SimpleNamespace(storage=LocalStorage(str(tmp_path)))
    EntryNotes("t", {"name": "who", "note": "x"}, {NOT_NULL: "id,name", "mine": "y"}).save(table.storage)
    forget_columns(table, gone)
    assert EntryNotes.load(table.storage) == EntryNotes("t", {"note": "x"}, {"mine": "y", **left})


def test_a_table_of_whose_lost_columns_nothing_was_said_stays_as_it_is(tmp_path: Path) -> None:
    table: Any = SimpleNamespace(storage=LocalStorage(str(tmp_path)))
    forget_columns(table, ["name"])
    assert not (tmp_path / NOTES_PATH).exists()

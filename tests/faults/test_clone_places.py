"""A clone comes to no place that is its original's under another name, and takes none from a table at which somebody works."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hudi_engine.clone import clone_table
from hudi_engine.errors import ConfigError
from hudi_engine.storage.base import Storage
from hudi_engine.storage.factory import open_storage

import tests.faults.mini_table as mini
from tests.faults.scenarios import upsert_both


@pytest.fixture
def original(tmp_path: Path) -> Storage:
    storage = mini.create_table(str(tmp_path / "wh" / "orders"))
    upsert_both(storage)
    return storage


@pytest.mark.parametrize(
    ("link", "leads_to", "target"),
    [
        ("link", "wh/orders", "link"),
        ("link", "wh/orders", "link/inside"),
        ("other", "wh", "other/orders"),
        ("other", "wh", "other"),
    ],
)
def test_a_link_to_the_original_is_the_original(
    original: Storage, tmp_path: Path, link: str, leads_to: str, target: str
) -> None:
    (tmp_path / link).symlink_to(tmp_path / leads_to)
    rows = mini.content(original)
    for source, path in ((original.base, target), (str(tmp_path / target), "wh/orders")):
        with pytest.raises(ConfigError, match="choose a folder beside it"):
            clone_table(open_storage(source), str(tmp_path / path), replace=True)
    assert mini.content(original) == rows
    assert sorted(os.listdir(tmp_path)) == sorted(["wh", link]) and os.listdir(tmp_path / "wh") == ["orders"]


def test_a_clone_may_come_where_a_link_leads_to_another_table(original: Storage, tmp_path: Path) -> None:
    other = mini.create_table(str(tmp_path / "old"))
    (tmp_path / "link").symlink_to("old")
    clone_table(original, str(tmp_path / "link"), replace=True)
    assert mini.content(other) == mini.content(original)
    assert (tmp_path / "link").is_symlink() and sorted(os.listdir(tmp_path)) == ["link", "old", "wh"]

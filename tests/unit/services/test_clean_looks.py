"""How often a clean looks at a table: each look is a request of an object store."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
from hudi_engine.table.services import Publication, clean
from hudi_engine.table.services.clean import execute

from tests.helpers.handmade import HandmadeTable
from tests.unit.services import tables
from tests.unit.services.tables import DAY_1, DAY_2, GROUP_3, batch, data_files, options
from tests.unit.services.test_clean import CountingStorage


@pytest.fixture
def five(tmp_path: Path) -> HandmadeTable:
    """A copy-on-write file group with five versions."""
    return tables.copy_on_write(tmp_path / "five", 5)


def test_a_folder_is_listed_once_and_the_published_list_is_read_for_the_plan_and_for_the_deletes(
    five: HandmadeTable,
) -> None:
    storage, looks = CountingStorage(str(five.path)), 0

    def live() -> Collection[str]:
        nonlocal looks
        looks += 1
        return ()

    publication = Publication(lambda _: None, live, lambda listed, _: [])
    assert clean(storage, options(), retain_commits=1, publish=publication).files_deleted == 3
    assert (storage.listed, looks) == ([""], 2)


def test_after_another_commit_the_folder_is_looked_at_again(
    five: HandmadeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, carry_out = CountingStorage(str(five.path)), execute._Run.carry_out

    def overtaken(run: execute._Run, publication: Publication) -> object:
        five.commit({DAY_2: {GROUP_3: batch({"b": 1}, DAY_2)}})
        return carry_out(run, publication)

    monkeypatch.setattr(execute._Run, "carry_out", overtaken)
    assert clean(storage, options(), retain_commits=1).files_deleted == 3
    assert storage.listed == ["", DAY_1]
    assert len([name for name in data_files(five.storage) if name.endswith(".parquet")]) == 3

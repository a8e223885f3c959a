"""Tables that Apache Hudi wrote are read as Apache Hudi reads them, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.errors import HudiError
from hudi_engine.format.storage.factory import open_storage

from tests.golden.golden import NAMES, REFUSED, description, unpack
from tests.golden.stories import STORIES
from tests.helpers.read_table import read_table
from tests.judge.arrow_rows import rows_of_arrow
from tests.judge.rows import difference

DISPUTED = {story.name: story.disputed for story in STORIES}
MERGE_ON_READ = [name for name in [*NAMES, *REFUSED] if "_mor_" in name and "vectors" not in name]


def rows_of(name: str, table: pa.Table) -> list[dict[str, Any]]:
    return rows_of_arrow(table.drop_columns(DISPUTED[name]))


def test_every_story_has_its_table_and_no_table_is_left_over() -> None:
    assert sorted(story.name for story in STORIES) == sorted([*NAMES, *REFUSED])


@pytest.mark.parametrize("name", NAMES)
def test_snapshot_equals_apache_hudis(name: str, tmp_path: Path) -> None:
    rows = rows_of(name, read_table(open_storage(str(unpack(name, tmp_path)))))

    assert difference(rows, description(name)["snapshot"]) == ""


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_read_is_refused_by_name(name: str, tmp_path: Path) -> None:
    known = "content version [12]; .* Hudi release that wrote it|is a VECTOR of Apache Hudi"
    with pytest.raises(HudiError, match=known):
        read_table(open_storage(str(unpack(name, tmp_path))))


@pytest.mark.parametrize("name", MERGE_ON_READ)
def test_read_optimized_equals_apache_hudis(name: str, tmp_path: Path) -> None:
    rows = rows_of(name, read_table(open_storage(str(unpack(name, tmp_path))), read_optimized=True))

    assert difference(rows, description(name)["read_optimized"]) == ""


@pytest.mark.parametrize("name", NAMES)
def test_every_instant_reads_as_apache_hudi_reads_it(name: str, tmp_path: Path) -> None:
    storage = open_storage(str(unpack(name, tmp_path)))

    for instant, expected in description(name)["as_of"].items():
        rows = rows_of(name, read_table(storage, as_of=instant))
        assert difference(rows, expected) == "", f"as of {instant}"


def test_a_golden_table_that_loses_a_row_is_noticed(tmp_path: Path) -> None:
    rows = rows_of_arrow(read_table(open_storage(str(unpack(NAMES[0], tmp_path)))))

    assert "rows against" in difference(rows[1:], description(NAMES[0])["snapshot"])

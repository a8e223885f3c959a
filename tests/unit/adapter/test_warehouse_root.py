"""The place that tables are kept below: made when it is missing, refused when tables cannot be kept there."""

from __future__ import annotations

from pathlib import Path

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.hudi.spark.folders import make_root


def test_a_root_that_is_made_is_left_out_of_a_repository(tmp_path: Path) -> None:
    make_root(str(tmp_path / "a" / "warehouse"))
    assert (tmp_path / "a" / "warehouse" / ".gitignore").read_text() == "*\n"


def test_a_root_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "analytics").mkdir()
    make_root(str(tmp_path))
    assert [each.name for each in tmp_path.iterdir()] == ["analytics"]


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_place_where_tables_cannot_be_is_refused_with_what_to_do(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DbtRuntimeError, match=r"tables cannot be kept there: .*Name a folder or URI"):
        make_root(str(tmp_path / name))

"""The place that tables are kept below: made when it is missing, refused when tables cannot be kept there."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.hudi.spark.errors import dbt_errors
from dbt.adapters.hudi.spark.folders import make_root, remove_at_exit_if_empty


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
    with pytest.raises(DbtRuntimeError, match=r"which cannot hold tables: .*Set a folder or URI"):
        make_root(str(tmp_path / name))


def test_a_root_that_must_not_be_written_to_is_refused_to_commands_that_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # who runs the tests may write everywhere
    monkeypatch.setattr("os.access", lambda path, mode: False)
    make_root(str(tmp_path))
    assert not list(tmp_path.iterdir()), "a look writes nothing"
    with pytest.raises(
        DbtRuntimeError, match=f"'{tmp_path}'.*dbt may not write there; nothing was run.*Set a folder or URI"
    ):
        make_root(str(tmp_path), writes=True)


def test_what_the_disk_refuses_is_one_sentence_with_the_folder() -> None:
    refused = OSError(errno.EROFS, "Read-only file system", "/lake/shop/orders/.hoodie")
    with pytest.raises(
        DbtRuntimeError, match="dbt may not read or write /lake/shop/orders/.hoodie: Read-only"
    ):
        with dbt_errors("a write"):
            raise refused
    with pytest.raises(FileNotFoundError), dbt_errors("a read"):
        raise FileNotFoundError(errno.ENOENT, "gone", "/x")


def test_a_warehouse_that_was_not_there_and_is_empty_at_the_end_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_exit: list[Callable[[], None]] = []
    monkeypatch.setattr("atexit.register", at_exit.append)
    for name in ("empty", "used", "before"):
        if name == "before":
            (tmp_path / name).mkdir()
        remove_at_exit_if_empty(str(tmp_path / name))
        (tmp_path / name).mkdir(exist_ok=True)
    (tmp_path / "used" / "analytics").mkdir()
    remove_at_exit_if_empty("s3://bucket/warehouse")

    for each in at_exit:
        each()

    assert sorted(each.name for each in tmp_path.iterdir()) == ["before", "used"]

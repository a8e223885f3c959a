"""Folders of tables that go: what is left of one when that is cut off is no table to anybody."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hudi_engine.errors import WriteConflictError
from hudi_engine.format.config.properties_file import PROPERTIES_PATH
from hudi_engine.format.storage.factory import open_storage

from dbt.adapters.hudi.spark.folders import move_folder, remove_folder, remove_schema_folder
from tests.faults import mini_table as mini
from tests.faults.test_rebuild_on_flat_store import OLD, Killed, make
from tests.helpers.s3_server import S3Server


def table(path: Path) -> Path:
    """A table with two partitions, the first of which sorts before all else in the folder."""
    mini.write(mini.create_table(str(path)), {".a": {"k": 1}, "b": {"l": 2}})
    return path


def kill_after(monkeypatch: pytest.MonkeyPatch, files: int) -> None:
    """Let the process end when so many files have gone."""
    unlink, gone = os.unlink, []

    def killed(path: str, **more: int) -> None:
        if len(gone) == files:
            raise Killed
        unlink(path, **more)
        gone.append(path)

    monkeypatch.setattr(os, "unlink", killed)


@pytest.mark.parametrize("files", range(1, 8))
def test_a_table_whose_removal_was_cut_off_is_no_table(
    files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = table(tmp_path / "sales" / "orders")
    with monkeypatch.context() as patched, pytest.raises(Killed):
        kill_after(patched, files)
        remove_folder(str(base))
    assert not (base / PROPERTIES_PATH).exists()

    remove_folder(str(base))
    assert not base.exists()
    remove_folder(str(base))


@pytest.mark.parametrize("files", range(1, 20, 2))
def test_of_a_schema_whose_removal_was_cut_off_every_table_is_whole_or_none(
    files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bases = [table(tmp_path / "sales" / name) for name in ("customers", "orders", "stock")]
    whole = {base: sorted(base.rglob("*")) for base in bases}
    (tmp_path / "sales" / "open.view.json").write_text("{}")
    with monkeypatch.context() as patched, pytest.raises(Killed):
        kill_after(patched, files)
        remove_schema_folder(str(tmp_path / "sales"))
    for base in bases:
        assert not (base / PROPERTIES_PATH).exists() or sorted(base.rglob("*")) == whole[base]

    remove_schema_folder(f"file:{tmp_path}/sales")
    assert not (tmp_path / "sales").exists()


def test_of_a_link_only_the_link_goes(tmp_path: Path) -> None:
    base = table(tmp_path / "orders")
    whole = sorted(base.rglob("*"))
    (tmp_path / "sales").mkdir()
    (tmp_path / "sales" / "linked").symlink_to(base)
    (tmp_path / "same").symlink_to(base)
    (tmp_path / "schema").symlink_to(tmp_path / "sales")
    remove_folder(str(tmp_path / "sales" / "linked"))
    remove_folder(str(tmp_path / "same"))
    remove_schema_folder(str(tmp_path / "schema"))
    assert sorted(base.rglob("*")) == whole
    assert sorted(each.name for each in tmp_path.iterdir()) == ["orders", "sales"]
    assert not list((tmp_path / "sales").iterdir())


@pytest.mark.parametrize("place", ["disk", "S3"])
@pytest.mark.parametrize("target", ["sales/bills", "billing/orders"])
def test_a_table_moves_within_its_schema_and_to_another(
    place: str, target: str, tmp_path: Path, s3_server: S3Server
) -> None:
    root = str(tmp_path / "wh") if place == "disk" else f"{s3_server.new_bucket()}/wh"
    model = mini.create_table(str(tmp_path / "model"))
    source = make(f"{root}/sales/orders", OLD, model)
    if place == "S3":
        with mini.begin(source), pytest.raises(WriteConflictError, match="cannot be moved while commit"):
            move_folder(source.base, f"{root}/{target}", {})
    move_folder(source.base, f"{root}/{target}", {"hoodie.write.lock.wait_time_ms": "2000"})
    assert mini.content(open_storage(f"{root}/{target}")) == OLD
    assert not source.exists("")

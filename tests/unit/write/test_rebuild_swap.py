"""Swapping a rebuilt table into place, and what is found when that was killed half way."""

from __future__ import annotations

from hudi_engine.write.define.rebuild import recover_swap, side_folder, swap


def table(folder, rows):
    (folder / ".hoodie").mkdir(parents=True)
    (folder / ".hoodie" / "hoodie.properties").write_text(rows)


def content(folder):
    return (folder / ".hoodie" / "hoodie.properties").read_text()


def test_the_new_table_takes_the_place_and_the_old_one_goes(tmp_path):
    base = tmp_path / "t"
    table(base, "old")
    side = side_folder(str(base))
    table(tmp_path / side.rpartition("/")[2], "new")
    swap(str(base), side)
    assert content(base) == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["t"]


def test_killed_between_the_renames_the_new_table_takes_the_place(tmp_path):
    table(tmp_path / ".t.replaced-1", "old")
    table(tmp_path / ".t.rebuild-1", "new")
    recover_swap(str(tmp_path / "t"))
    assert content(tmp_path / "t") == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["t"]


def test_without_a_complete_successor_the_old_table_comes_back(tmp_path):
    table(tmp_path / ".t.replaced-1", "old")
    (tmp_path / ".t.rebuild-1").mkdir()
    recover_swap(str(tmp_path / "t"))
    assert content(tmp_path / "t") == "old"


def test_a_table_in_place_is_left_alone(tmp_path):
    table(tmp_path / "t", "current")
    table(tmp_path / ".t.rebuild-1", "being built")
    recover_swap(str(tmp_path / "t"))
    assert content(tmp_path / "t") == "current"
    assert (tmp_path / ".t.rebuild-1").exists()

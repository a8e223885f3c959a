"""Cells that were looked up are not looked up again, and what is held is bounded."""

from __future__ import annotations

from collections.abc import Sequence

from hudi_engine.format.metadata.found_cells import FileName, FoundCells

CELLS = {b"a": b"1", b"b": b"2"}


class File:
    def __init__(self) -> None:
        self.asked: list[bytes] = []

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        self.asked += keys
        return {key: CELLS[key] for key in keys if key in CELLS}


def name(path: str, size: int = 1) -> FileName:
    return "/t", path, size, 1


def test_a_key_is_looked_up_once_whether_or_not_the_file_has_it() -> None:
    cells, file = FoundCells(), File()
    for _ in range(2):
        assert cells.get(name("f"), [b"a", b"x"], file.get) == {b"a": b"1"}
    assert cells.get(name("f"), [b"a", b"b"], file.get) == CELLS
    assert file.asked == [b"a", b"x", b"b"]


def test_a_file_of_another_size_is_another_file() -> None:
    cells, file = FoundCells(), File()
    cells.get(name("f"), [b"a"], file.get)
    cells.get(name("f", 2), [b"a"], file.get)
    assert file.asked == [b"a", b"a"]


def test_the_oldest_are_let_go() -> None:
    cells, file = FoundCells(most=3), File()
    for path in ("f", "g"):
        cells.get(name(path), [b"a", b"b"], file.get)
    cells.get(name("g"), [b"a"], file.get)
    assert len(file.asked) == 4
    cells.get(name("f"), [b"a"], file.get)
    assert len(file.asked) == 5

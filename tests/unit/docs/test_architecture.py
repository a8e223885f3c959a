"""ARCHITECTURE.md leads to what is there: every path and name exists, and every room has its line."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
TOP = ("dbt/", "docs/", "engine/", "tests/", "tools/")
PLACES = sorted(set(re.findall(r"`([\w./-]+(?:/|\.py|\.sql)(?::[\w.]+)?)`", PAGE)))


@cache
def _names(path: Path) -> set[str]:
    """Functions, classes with their methods and attributes, and constants of a module."""
    found: set[str] = set()

    def add(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.add(prefix + node.name)
                if isinstance(node, ast.ClassDef):
                    add(node.body, f"{prefix}{node.name}.")
            for target in getattr(node, "targets", [getattr(node, "target", None)]):
                if isinstance(target, ast.Name):
                    found.add(prefix + target.id)

    add(ast.parse(path.read_text(encoding="utf-8")).body, "")
    return found


def _path(place: str) -> Path:
    return ROOT / place if place.startswith(TOP) else ROOT / "engine" / "hudi_engine" / place


@pytest.mark.parametrize("place", PLACES)
def test_what_the_page_names_exists(place: str) -> None:
    file, _, name = place.partition(":")
    path = _path(file)

    assert path.is_dir() if file.endswith("/") else path.is_file()
    assert not name or name in _names(path)


def test_every_room_has_its_line() -> None:
    first_cells = "\n".join(re.findall(r"^\| (`[^|]*`) \|", PAGE, re.M))
    rooms = [
        *(
            path.relative_to(ROOT / "engine" / "hudi_engine")
            for path in (ROOT / "engine" / "hudi_engine").iterdir()
            if path.is_file() or any(path.glob("*.py"))
        ),
        *(
            path.relative_to(ROOT / "engine" / "hudi_engine")
            for storey in ("format", "table", "spark")
            for path in (ROOT / "engine" / "hudi_engine" / storey).iterdir()
            if path.is_dir() and any(path.glob("*.py"))
        ),
        *(
            path.relative_to(ROOT)
            for path in (ROOT / "dbt" / "adapters" / "hudi").iterdir()
            if path.is_dir() and any(path.glob("*.py"))
        ),
    ]
    missing = [
        str(room)
        for room in rooms
        if not room.name.startswith("_")
        and room.name != "py.typed"
        and f"`{room.as_posix()}" not in first_cells
    ]

    assert missing == []


def test_picture_of_the_storeys_is_current() -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        import make_storeys
    finally:
        sys.path.remove(str(ROOT / "docs"))

    assert make_storeys.PICTURE.read_text(encoding="utf-8") == make_storeys.picture()

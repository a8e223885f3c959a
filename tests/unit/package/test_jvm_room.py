"""Spark's Java objects are touched in one room."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
ROOM = ROOT / "engine" / "hudi_engine" / "spark" / "jvm"
PRIVATE = {"_jvm", "_jdf", "_jsparkSession", "_jsc", "_jschema", "_jc"}


def mentions(source: str) -> Iterator[str]:
    """Give the private names, and imports of py4j, of a file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in PRIVATE:
            yield node.attr
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "py4j":
            yield "py4j"
        elif isinstance(node, ast.Import) and any(each.name.split(".")[0] == "py4j" for each in node.names):
            yield "py4j"


@pytest.mark.parametrize("folder", ["engine/hudi_engine", "dbt/adapters/hudi"])
def test_java_is_touched_only_in_the_jvm_room(folder: str) -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / folder).rglob("*.py")
        if ROOM not in path.parents and any(mentions(path.read_text(encoding="utf-8")))
    }
    assert not found


def test_a_mention_is_found() -> None:
    assert [*mentions("from py4j.protocol import Py4JError\nspark._jvm.x")] == ["py4j", "_jvm"]

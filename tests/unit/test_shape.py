"""The shape of the code: its size, few parameters, and a docstring where a function is dense."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (ROOT / "engine" / "hudi_engine", ROOT / "dbt" / "adapters" / "hudi")
MODULES = {path: path.read_text(encoding="utf-8") for room in ROOMS for path in sorted(room.rglob("*.py"))}
# A fix that adds a mechanism replaces another one, or refuses the case by name.
MAX_LINES = 93_542
TREES = {path: ast.parse(text) for path, text in MODULES.items()}
FUNCTIONS = [
    (path, node)
    for path, tree in TREES.items()
    for node in ast.walk(tree)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
]


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_source_stays_within_its_budget() -> None:
    assert sum(text.count("\n") for text in MODULES.values()) <= MAX_LINES


def test_no_function_has_more_than_seven_parameters() -> None:
    found = {}
    for path, node in FUNCTIONS:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        names = [each.arg for each in arguments if each.arg not in ("self", "cls")]
        if len(names) > 7:
            found[f"{shown(path)}:{node.name}"] = names

    assert found == {}


def branches(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    kinds = (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.comprehension)
    found = list(ast.walk(node))
    words = sum(len(each.values) - 1 for each in found if isinstance(each, ast.BoolOp))
    return sum(isinstance(each, kinds) for each in found) + words


def test_a_dense_function_says_in_a_line_what_it_is_for() -> None:
    dense = [(path, node) for path, node in FUNCTIONS if branches(node) >= 8 or lines(node) > 25]

    assert len(dense) > 100
    assert [f"{shown(path)}:{node.name}" for path, node in dense if ast.get_docstring(node) is None] == []

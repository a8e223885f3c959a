"""The shape of the code: files and functions that fit on a screen, few parameters, names that mean one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (ROOT / "engine" / "hudi_engine", ROOT / "dbt" / "adapters" / "hudi")
MODULES = {path: path.read_text(encoding="utf-8") for room in ROOMS for path in sorted(room.rglob("*.py"))}
TREES = {path: ast.parse(text) for path, text in MODULES.items()}
FUNCTIONS = [
    (path, node)
    for path, tree in TREES.items()
    for node in ast.walk(tree)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
]
BESIDE = ("benchmarks", "docs", "integration_tests", "tests", "tools")
# The same pair of functions for each type of log block; nouns that each room has its own of.
SAME_NAME = {"decode", "encode", "columns", "names"}


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def ninth_decile(values: list[int]) -> int:
    return sorted(values)[len(values) * 9 // 10]


def test_no_file_is_longer_than_450_lines_and_nine_in_ten_have_250_at_most() -> None:
    sizes = {shown(path): text.count("\n") for path, text in MODULES.items()}

    beside = {
        shown(path): path.read_text(encoding="utf-8").count("\n")
        for folder in BESIDE
        for path in (ROOT / folder).rglob("*.py")
    }

    assert {path: size for path, size in {**beside, **sizes}.items() if size > 450} == {}
    assert ninth_decile(list(sizes.values())) <= 250


def test_no_function_is_longer_than_60_lines_and_nine_in_ten_have_24_at_most() -> None:
    sizes = {f"{shown(path)}:{node.name}": lines(node) for path, node in FUNCTIONS}

    assert {name: size for name, size in sizes.items() if size > 60} == {}
    assert ninth_decile([lines(node) for _, node in FUNCTIONS]) <= 24


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


def test_a_public_name_of_engine_and_adapter_means_one_thing() -> None:
    homes = defaultdict(set)
    for path, tree in TREES.items():
        if "cli" not in path.parts:
            for node in tree.body:
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                    homes[node.name].add(shown(path))

    assert {name: paths for name, paths in homes.items() if len(paths) > 1 and name not in SAME_NAME} == {}

"""The pages of operations and of the command line show macros and commands as they are."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from pathlib import Path

import pytest
from hudi_engine.cli.program import COMMANDS, declare

ROOT = Path(__file__).resolve().parents[3]
MACROS = {
    name: arguments
    for file in (ROOT / "dbt/include/hudi/macros/procedures").glob("*.sql")
    for name, arguments in re.findall(r"macro (hudi_[a-z]\w*)\((.*?)\) %}", file.read_text(encoding="utf-8"))
}
SHOWN = [
    (page, *found)
    for page in ("operations.md", "clustering.md")
    for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    if line.startswith("| ")
    for found in re.findall(r"`(hudi_\w+)\((.*?)\)`", line.split(" | ")[0 if page == "operations.md" else 1])
]


@pytest.mark.parametrize(("page", "name", "arguments"), SHOWN)
def test_a_macro_is_shown_with_all_its_arguments(page: str, name: str, arguments: str) -> None:
    assert arguments == MACROS[name]


def test_every_macro_is_shown() -> None:
    assert set(MACROS) == {name for page, name, _ in SHOWN if page == "operations.md"}


def test_every_command_and_switch_is_shown() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"`([a-z][a-z-]+)[ `]", page))
    assert set(COMMANDS) <= shown
    parser = ArgumentParser(conflict_handler="resolve")
    for operation in COMMANDS.values():
        declare(parser, operation)
    known = {flag for action in parser._actions for flag in action.option_strings} | {"--json", "--version"}
    assert set(re.findall(r"--[a-z][a-z-]+", page)) <= known


def test_operations_in_commands_have_legal_arguments() -> None:
    changes = (ROOT / "dbt/include/hudi/macros/changes/changes.sql").read_text(encoding="utf-8")
    macros = {**MACROS, **dict(re.findall(r"macro (hudi_[a-z]\w*)\((.*?)\) %}", changes))}
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md"))
    commands = re.findall(r"run-operation (\w+) --args '\{(.*?)\}'", pages)
    unknown = [
        (name, key)
        for name, arguments in commands
        for key in re.findall(r"(?:^|, )(\w+):", arguments)
        if not re.search(rf"\b{key}\b", macros.get(name, ""))
    ]

    assert commands
    assert unknown == []

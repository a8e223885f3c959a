"""The page about undo and receipts shows commands and options as they are."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from pathlib import Path

from hudi_engine.cli.program import COMMANDS as ENGINE
from hudi_engine.cli.program import declare

from dbt.adapters.hudi.shell.commands import COMMANDS, parser_of

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "undo.md").read_text(encoding="utf-8")
LINES = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


def test_each_command_of_the_page_is_taken() -> None:
    shown = [line.split() for line in LINES]
    assert {words[1] for words in shown if words[0] == "dbt-hudi"} == {"runs", "undo"}
    for words in shown:
        if words[0] == "dbt-hudi":
            parser_of(words[1]).parse_args(words[2:])
        else:
            parser = ArgumentParser()
            declare(parser, ENGINE[words[2]])
            parser.parse_args(words[3:])


def test_the_table_of_undo_has_every_option() -> None:
    table = PAGE.partition("## Undo a run")[2].partition("## Receipts")[0]
    shown = {
        flag
        for line in table.splitlines()
        if line.startswith("| `")
        for flag in re.findall(r"--[a-z-]+", line.split("|")[1])
    }
    known = {
        flag
        for action in parser_of("undo")._actions
        for flag in action.option_strings
        if flag.startswith("--")
    }
    assert shown - {"--target", "--project-dir"} == known - {"--help"}
    assert COMMANDS.keys() >= {"runs", "undo"}

"""The loop of the shell: a line in, a dbt command run in this process, and the next line."""

from __future__ import annotations

import argparse
import gc
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TextIO

from dbt.cli.main import dbtRunner
from dbt_common.events.base_types import EventMsg
from hudi_engine.cli.program import escape_what_is_lacking

from dbt.adapters.hudi.serve import main as serve
from dbt.adapters.hudi.shell.commands import COMMANDS, run_command
from dbt.adapters.hudi.shell.planning import plan
from dbt.adapters.hudi.shell.prompt import typed_lines, without_values
from dbt.adapters.hudi.spark.session import keep_up, leave_spark

PROMPT = "dbt-hudi> "
_HELP = """\
a dbt command without `dbt`, such as: run -s orders+ | test | build | show -s orders | compile -s orders | ls
  run-operation hudi_stats --args '{table: orders}'
set NAME=VALUE, unset NAME    an environment variable, for the commands that follow
restart                       end Spark; the next command that needs it starts another, by the profile as it is then
help [COMMAND]                this text, or dbt's own about a command
exit                          leave (so does the end of the input)"""
# With this event dbt itself reports why a command ends; it leaves unknown commands to its caller.
_ERROR_SAID = "MainEncounteredError"
_LEAVE = ("exit", "quit")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


class Shell:
    """Runs dbt commands one after the other; one that fails does not end it. Each gets ``options`` at its end."""

    def __init__(self, options: Sequence[str] = ()) -> None:
        self._options = list(options)
        self._own: Mapping[str, Callable[[list[str]], bool]] = {
            "help": self._help,
            "set": self._set,
            "unset": self._unset,
            "restart": self._restart,
            **dict.fromkeys(_LEAVE, self._leave),
        }

    def run(self, source: TextIO) -> int:
        """Take lines until they end or one is exit; a terminal gets a prompt. Returns 1 when a script's command failed."""
        keep_up()
        typed = source.isatty()
        if typed:
            _say("dbt commands without `dbt`; help lists more, exit leaves")
        failed = False
        for line in typed_lines(PROMPT, self._own) if typed else _read_lines(source):
            words = self._words(line)
            if words is None:
                failed = True
            elif words and words[0] in _LEAVE and len(words) == 1:
                break
            elif words:
                failed = not self._run_one(words) or failed
        return int(failed and not typed)

    def _words(self, line: str) -> list[str] | None:
        try:
            words = shlex.split(_without_comment(line))
        except ValueError as error:
            _say(f"{without_values(line)!r} is no command: {error}")
            return None
        return words[1:] if words[:1] == ["dbt"] else words

    def _run_one(self, words: list[str]) -> bool:
        start = time.perf_counter()
        try:
            good = self._own.get(words[0], self._dbt)(words)
        except KeyboardInterrupt:
            good = False
        if words[0] not in self._own:
            _say(
                f"-- {'done' if good else 'failed'}: {shlex.join(words)} ({time.perf_counter() - start:.1f} s)"
            )
        return good

    def _dbt(self, words: list[str]) -> bool:
        reported: list[str] = []

        def note(event: EventMsg) -> None:
            if event.info.name == _ERROR_SAID:
                reported.append(event.info.name)

        result = dbtRunner(callbacks=[note]).invoke([*words, *self._options])
        if result.exception is not None and not reported:
            _say(str(result.exception))
        good = bool(result.success)
        if not good:
            # a run that an error ends leaves its pool of threads to be collected, which must not wait for the very end
            del result
            gc.collect()
        return good

    def _leave(self, words: list[str]) -> bool:
        _say(f"{words[0]} takes no words; {shlex.join(words[1:])} was not run")
        return False

    def _help(self, words: list[str]) -> bool:
        if len(words) > 1:
            return bool(dbtRunner().invoke([*words[1:], "--help"]).success)
        _say(_HELP)
        return True

    def _set(self, words: list[str]) -> bool:
        given = [_ASSIGNMENT.fullmatch(word) for word in words[1:]]
        if not given or None in given:
            _say("write set NAME=VALUE, with quotes around a value that has blanks")
            return False
        os.environ.update({each[1]: each[2] for each in given if each is not None})
        return True

    def _unset(self, words: list[str]) -> bool:
        for name in words[1:]:
            os.environ.pop(name, None)
        return True

    def _restart(self, words: list[str]) -> bool:  # noqa: ARG002
        _say(
            "Spark is ended"
            if leave_spark()
            else "no Spark runs yet; the next command that needs it starts one"
        )
        return True


def _read_lines(source: TextIO) -> Iterator[str]:
    for line in source:
        if line.strip() and not line.lstrip().startswith("#"):
            _say(f"{PROMPT}{without_values(line).strip()}")
            yield line


def _without_comment(line: str) -> str:
    """Return a line up to the ``#`` that begins a word, outside of quotes, as shells read it."""
    quote, before = "", " "
    for place, char in enumerate(line):
        if before == "\\" and quote != "'":
            before = ""
            continue
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "#" and before.isspace():
            return line[:place]
        before = char
    return line


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


_ABOUT = """\
shell keeps dbt and Spark up between commands, so that the second one answers in a second or two. Commands are typed
without `dbt` (run -s orders+, test, show --inline 'select 1'), or read from standard input, one a line. The profile,
the project and the environment are read again by each command. Further options, such as --target prod or
--project-dir DIR, go to every command. plan shows what a run would write; runs and undo list the dbt runs that tables know
of, and take one back; show-config MODEL prints what a model is built with. Each has a --help of its own.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; returns 1 when a command read from standard input failed, or a server cannot start."""
    parser = argparse.ArgumentParser(
        prog="dbt-hudi", epilog=_ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["shell", "plan", "serve", *COMMANDS], help="what to do")
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] == "plan":
        escape_what_is_lacking(sys.stdout)
        return plan(words[1:])
    if words and words[0] == "serve":
        return serve(words[1:])
    if words and words[0] in COMMANDS:
        escape_what_is_lacking(sys.stdout)
        return run_command(words[0], words[1:])
    _, options = parser.parse_known_args(words)
    escape_what_is_lacking(sys.stdout)
    return Shell(options).run(sys.stdin)

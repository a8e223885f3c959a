"""The loop of the shell: a line in, a command run in the server, and the next line."""

from __future__ import annotations

import os
import re
import shlex
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TextIO

from hudi_engine.cli.program import escape_what_is_lacking

from dbt.adapters.hudi.channel import COMMANDS, SPARK, ChannelError, connect, receive, send, server_folder
from dbt.adapters.hudi.shell.client import end_server, run_in, start_server
from dbt.adapters.hudi.shell.prompt import typed_lines, without_values

PROMPT = "dbt-hudi> "
_HELP = """\
a dbt command without `dbt`, such as: run -s orders+ | test | build | show -s orders | compile -s orders | ls
  run-operation hudi_stats --args '{table: orders}'
set NAME=VALUE, unset NAME    an environment variable, for the commands that follow
restart                       end the Spark that no command uses; the next one that needs one starts another
help [COMMAND]                this text, or dbt's own about a command
exit                          leave (so does the end of the input)"""
_ABOUT = f"""\
usage: dbt-hudi shell [OPTIONS OF DBT] [< FILE]

Takes commands at a prompt, or from standard input, one a line. OPTIONS, such as --target prod or --project-dir DIR, go to
every command. Lines are:

{_HELP}"""
_LEAVE = ("exit", "quit")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


class Shell:
    """Runs commands one after the other; one that fails does not end it. Each of dbt gets ``options`` at its end.

    They run in the server of this user; one that is started for them ends with the shell, or with what others run in it then.
    """

    def __init__(self, options: Sequence[str] = ()) -> None:
        self._options = list(options)
        self._folder = server_folder()
        self._started = False
        self._own: Mapping[str, Callable[[list[str]], bool]] = {
            "help": self._help,
            "set": self._set,
            "unset": self._unset,
            "restart": self._restart,
            **dict.fromkeys(_LEAVE, self._leave),
        }

    def run(self, source: TextIO) -> int:
        """Take lines until they end or one is exit; a terminal gets a prompt. Returns 1 when a script's command failed."""
        escape_what_is_lacking(sys.stdout)
        if set(self._options) & {"-h", "--help"}:
            _say(_ABOUT)
            return 0
        try:
            return self._take(source)
        finally:
            if self._started:
                end_server(self._folder, when_unused=True)

    def _take(self, source: TextIO) -> int:
        """Run line after line."""
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
        except ChannelError as error:
            good = False
            _say(str(error))
        if words[0] not in self._own:
            _say(
                f"-- {'done' if good else 'failed'}: {shlex.join(words)} ({time.perf_counter() - start:.1f} s)"
            )
        return good

    def _dbt(self, words: list[str]) -> bool:
        with self._connection() as connection:
            return run_in(connection, [*words, *self._options]) == 0

    def _connection(self) -> socket.socket:
        try:
            return connect(self._folder / COMMANDS)
        except OSError:
            self._started = True
            return start_server(self._folder)

    def _leave(self, words: list[str]) -> bool:
        _say(f"{words[0]} takes no words; {shlex.join(words[1:])} was not run")
        return False

    def _help(self, words: list[str]) -> bool:
        if len(words) > 1:
            return self._dbt([*words[1:], "--help"])
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
        ended = 0
        with suppress(OSError, EOFError), connect(self._folder / SPARK) as connection:
            send(connection, {"end_idle": True})
            ended = receive(connection)[0]["ended"]
        _say("Spark is ended" if ended else "no Spark is idle; the next command that needs one starts it")
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

"""Lines typed at a terminal, with history and completion."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from hudi_engine.format.storage.redact import HIDDEN

_MANIFEST = Path("target") / "manifest.json"
_SELECTS = ("-s", "--select", "-m", "--models", "--model", "--exclude")
_KEPT_LINES = 1000
_VALUES = re.compile(r"^(\s*(?:dbt\s+)?set\s[^=]*=).*", re.DOTALL)


def typed_lines(prompt: str, own: Iterable[str]) -> Iterator[str]:
    """Yield what is typed, until the end of the input; Ctrl-C drops a line. ``own``: the shell's commands."""
    history = _with_readline(Completion(own))
    try:
        while True:
            try:
                yield input(prompt)
            except KeyboardInterrupt:
                print()  # noqa: T201
            except EOFError:
                print()  # noqa: T201
                return
    finally:
        if history is not None:
            readline, file = history
            try:
                file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                readline.set_history_length(_KEPT_LINES)
                _forget_values(readline)
                readline.write_history_file(file)
            except OSError:
                pass  # a history that cannot be kept is no reason to fail


def without_values(line: str) -> str:
    """Return a line without the values that it gives to environment variables, which may be secrets."""
    return _VALUES.sub(rf"\1{HIDDEN}", line)


def _forget_values(readline: ModuleType) -> None:
    """Take lines that give values out of the history; kept without them, one of them called again would set what hides them."""
    for place in reversed(range(readline.get_current_history_length())):
        line = readline.get_history_item(place + 1) or ""
        if without_values(line) != line:
            readline.remove_history_item(place)


def _with_readline(completion: Completion) -> tuple[ModuleType, Path] | None:
    try:
        import readline
    except ImportError:
        return None
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    file = Path(state) / "dbt-hudi" / "shell_history"
    try:
        readline.read_history_file(file)
    except OSError:
        pass  # there is none yet
    readline.set_completer_delims(" \t\n,")
    readline.set_completer(
        lambda text, number: completion.nth(readline.get_line_buffer()[: readline.get_begidx()], text, number)
    )
    readline.parse_and_bind("tab: complete")
    return readline, file


@lru_cache
def _commands() -> Mapping[str, Any]:
    """Return dbt's commands; it is loaded when they are first asked for, as the prompt itself needs nothing of it."""
    loaded: Any = import_module("dbt.cli.main")
    return cast(Mapping[str, Any], loaded.cli.commands)


class Completion:
    """Completes commands, options, and names of nodes and macros by dbt's manifest."""

    def __init__(self, own: Iterable[str], manifest: Path = _MANIFEST) -> None:
        self._own = list(own)
        self._manifest = manifest

    def nth(self, before: str, text: str, number: int) -> str | None:
        """Return candidate ``number``, from 0, None after the last, as readline expects."""
        found = self.candidates(before.split(), text)
        return found[number] if number < len(found) else None

    def candidates(self, before: list[str], text: str) -> list[str]:
        """Return what a word may become."""
        words = before[1:] if before[:1] == ["dbt"] else before
        if not words or words == ["help"]:
            legal = [*_commands(), *([] if words else self._own)]
        elif text.startswith("-"):
            command = _commands().get(words[0])
            legal = [] if command is None else [opt for each in command.params for opt in each.opts]
        elif words == ["run-operation"]:
            legal = self._names("macros", ("dbt", "dbt_spark"))
        elif any(word in _SELECTS for word in words):
            legal = [*self._names("nodes"), *self._names("sources")]
        else:
            legal = list(getattr(_commands().get(words[0]), "commands", ()))
        return sorted({each for each in legal if each.startswith(text)})

    def _names(self, kind: str, internal: tuple[str, ...] = ()) -> list[str]:
        try:
            nodes = json.loads(self._manifest.read_text(encoding="utf-8")).get(kind, {}).values()
        except (OSError, ValueError):
            return []
        return [
            node["name"]
            for node in nodes
            if node.get("package_name") not in internal and "__" not in node["name"]
        ]

"""What a command selects, as far as it can be told before dbt has read the project: whether there may be anything to run.

Spark is started beside dbt's reading. Where a selection names nothing that is known, it waits until dbt asks for it: that
costs a model whose file is not found here a few seconds, and saves a start for a selection that finds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_PATHS = ("model_paths", "seed_paths", "snapshot_paths", "test_paths", "analysis_paths")
_GRAPH = re.compile(r"^(?:@|\d*\+)?(.*?)(?:\+\d*)?$")
_PLAIN = re.compile(r"(?:tag:)?([\w.-]+)")
# What each command runs, by the folders of it; dbt itself makes nodes of other files.
_FILES = {"seed": ("seed_paths", (".csv",)), "run": ("model_paths", (".sql", ".py"))}


def may_run(config: Any) -> bool:
    """Tell whether a command may find something to run; only a sure no is a no.

    Args:
        config: dbt's config of the run: the project's folders, and the command line as ``args``.
    """
    root = getattr(config, "project_root", None)
    command = getattr(config, "args", None)
    if root is None or command is None:
        return True
    if not (Path(root) / "dbt_packages").is_dir() and _has_no_files(config, getattr(command, "which", "")):
        return False
    selected = [each for each in _words(command) if isinstance(each, str)]
    if not selected:
        return True
    names = _Names(config)
    return any(all(names.may_have(part) for part in each.split(",")) for each in selected)


def _words(command: Any) -> list[object]:
    given = getattr(command, "select", None) or getattr(command, "models", None) or ()
    if isinstance(given, str):
        given = [given]
    return [word for each in given for word in (each.split() if isinstance(each, str) else [each])]


def _has_no_files(config: Any, command: str) -> bool:
    kind, endings = _FILES.get(command, ("", ()))
    folders = getattr(config, kind, None) if kind else None
    if not folders:
        return False
    return not any(path.suffix in endings for path in _files(config.project_root, folders))


def _files(root: str, folders: Iterable[str]) -> Iterable[Path]:
    for folder in folders:
        yield from (Path(root) / folder).rglob("*")


class _Names:
    """Names that a project has for its nodes: of files and folders, and in dbt's manifest of the run before."""

    def __init__(self, config: Any) -> None:
        folders = [folder for kind in _PATHS for folder in getattr(config, kind, None) or ()]
        self._files = {path.stem for path in _files(config.project_root, folders)}
        manifest = Path(config.project_root) / str(getattr(config, "target_path", "target")) / "manifest.json"
        self._manifest: str | None
        try:
            self._manifest = manifest.read_text(encoding="utf-8")
        except (OSError, ValueError):
            self._manifest = None

    def may_have(self, part: str) -> bool:
        """Tell whether a part of a selection may be known; without a manifest, and for other methods, it always may."""
        graph = _GRAPH.match(part)
        plain = _PLAIN.fullmatch(graph[1] if graph else part)
        if plain is None or self._manifest is None:
            return True
        return any(word in self._files or f'"{word}"' in self._manifest for word in _spellings(plain[1]))


def _spellings(name: str) -> set[str]:
    """Return a name, its last part (``package.folder.model``) and what comes before the last dot (``model.sql``)."""
    before, _, last = name.rpartition(".")
    return {name, before, last} - {""}

"""The changelog: fragments in `changelog.d/` that become the section of a version."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

from tools.console import ROOT, SetupError

KINDS = {"added": "Added", "changed": "Changed", "fixed": "Fixed"}
_NAME = re.compile(rf"[a-z0-9][a-z0-9_.-]*\.({'|'.join(KINDS)})\.md")
_VERSION = re.compile(r"\d+\.\d+\.\d+")


def fragments(folder: Path) -> dict[str, list[Path]]:
    """Return the waiting fragments by kind, each kind in the order of the names.

    Raises:
        SetupError: A file's name says no kind, or it is empty; the message names it.
    """
    found: dict[str, list[Path]] = {kind: [] for kind in KINDS}
    for path in sorted(folder.glob("*")):
        if path.name == "README.md":
            continue
        match = _NAME.fullmatch(path.name)
        if match is None:
            raise SetupError(
                f"changelog.d/{path.name} is not a fragment: its name must be <topic>.<kind>.md, and the kinds are "
                f"{', '.join(KINDS)}"
            )
        if not path.read_text(encoding="utf-8").strip():
            raise SetupError(f"changelog.d/{path.name} is empty: write a sentence for users")
        found[match.group(1)].append(path)
    return found


def section(found: dict[str, list[Path]]) -> str:
    """Return the fragments as lists below a heading a kind."""
    parts = []
    for kind, heading in KINDS.items():
        if found[kind]:
            items = [
                "* " + "\n  ".join(path.read_text(encoding="utf-8").strip().splitlines())
                for path in found[kind]
            ]
            parts.append(f"### {heading}\n\n" + "\n".join(items) + "\n")
    return "\n".join(parts)


def release(version: str, root: Path = ROOT, today: datetime.date | None = None) -> None:
    """Move the fragments into ``CHANGELOG.md``, below the version's heading; one that says ``(unreleased)`` is dated.

    Raises:
        SetupError: The version is no ``1.2.3``, or a fragment is damaged.
    """
    if not _VERSION.fullmatch(version):
        raise SetupError(f"{version!r} is no version; write it as 1.2.3")
    folder, page = root / "changelog.d", root / "CHANGELOG.md"
    found = fragments(folder)
    text = page.read_text(encoding="utf-8")
    heading = f"## {version} ({today or datetime.date.today()})\n"
    waiting = f"## {version} (unreleased)\n"
    if waiting in text:
        before, _, after = text.partition(waiting)
        introduction, mark, rest = after.partition("\n## ")
        text = f"{before}{heading}{introduction.rstrip()}\n\n{section(found)}{mark}{rest}"
    else:
        title, _, rest = text.partition("\n")
        text = f"{title}\n\n{heading}\n{section(found)}\n{rest.lstrip()}"
    page.write_text(text.rstrip() + "\n", encoding="utf-8")
    for paths in found.values():
        for path in paths:
            path.unlink()

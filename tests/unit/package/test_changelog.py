"""Sentences for users wait in a folder until a version is made of them."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from tools.changelog import fragments, release, section
from tools.console import ROOT, SetupError

DAY = datetime.date(2026, 3, 1)


def waiting(root: Path, changelog: str, **files: str) -> Path:
    (root / "changelog.d").mkdir()
    (root / "CHANGELOG.md").write_text(changelog, encoding="utf-8")
    for name, text in files.items():
        (root / "changelog.d" / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return root


def test_the_fragments_that_wait_here_can_be_made_a_version() -> None:
    assert section(fragments(ROOT / "changelog.d"))


def test_a_release_moves_the_fragments_below_the_headings_of_their_kinds(tmp_path: Path) -> None:
    root = waiting(
        tmp_path,
        "# Changelog\n\n## 0.1.0 (2025-01-01)\n\nFirst.\n",
        a__fix__md="Nulls stay\nnulls.",
        b__feature__md="Archive.",
    )

    release("0.2.0", root, DAY)

    assert (root / "CHANGELOG.md").read_text(encoding="utf-8") == (
        "# Changelog\n\n## 0.2.0 (2026-03-01)\n\n### New\n\n* Archive.\n\n### Mended\n\n* Nulls stay\n  nulls.\n"
        "\n## 0.1.0 (2025-01-01)\n\nFirst.\n"
    )
    assert list((root / "changelog.d").iterdir()) == []


def test_a_version_that_waits_unreleased_is_dated_and_keeps_its_introduction(tmp_path: Path) -> None:
    root = waiting(
        tmp_path, "# Changelog\n\n## 0.1.0 (unreleased)\n\nFirst version.\n", a__change__md="Now UTC."
    )

    release("0.1.0", root, DAY)

    assert (root / "CHANGELOG.md").read_text(encoding="utf-8") == (
        "# Changelog\n\n## 0.1.0 (2026-03-01)\n\nFirst version.\n\n### Changed\n\n* Now UTC.\n"
    )


@pytest.mark.parametrize(("name", "text"), [("a__bug__md", "x"), ("a__fix__md", " \n"), ("Notes", "x")])
def test_a_file_that_is_no_fragment_is_named(tmp_path: Path, name: str, text: str) -> None:
    root = waiting(tmp_path, "# Changelog\n", **{name: text})

    with pytest.raises(SetupError, match=name.replace("__", ".")):
        release("0.2.0", root, DAY)
    assert (root / "changelog.d" / name.replace("__", ".")).exists()

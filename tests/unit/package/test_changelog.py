"""Changelog fragments become the section of a version."""

from __future__ import annotations

import datetime
from pathlib import Path

import hudi_engine
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


def test_fragments_of_this_repository_are_valid() -> None:
    section(fragments(ROOT / "changelog.d"))


def test_the_changelog_has_the_current_version() -> None:
    assert f"## {hudi_engine.__version__} (" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_release_moves_fragments_below_headings(tmp_path: Path) -> None:
    root = waiting(
        tmp_path,
        "# Changelog\n\n## 0.1.0 (2025-01-01)\n\nFirst.\n",
        a__fixed__md="Nulls stay\nnulls.",
        b__added__md="Archive.",
    )

    release("0.2.0", root, DAY)

    assert (root / "CHANGELOG.md").read_text(encoding="utf-8") == (
        "# Changelog\n\n## 0.2.0 (2026-03-01)\n\n### Added\n\n* Archive.\n\n### Fixed\n\n* Nulls stay\n  nulls.\n"
        "\n## 0.1.0 (2025-01-01)\n\nFirst.\n"
    )
    assert list((root / "changelog.d").iterdir()) == []


def test_unreleased_version_gets_its_date(tmp_path: Path) -> None:
    root = waiting(
        tmp_path, "# Changelog\n\n## 0.1.0 (unreleased)\n\nFirst version.\n", a__changed__md="Now UTC."
    )

    release("0.1.0", root, DAY)

    assert (root / "CHANGELOG.md").read_text(encoding="utf-8") == (
        "# Changelog\n\n## 0.1.0 (2026-03-01)\n\nFirst version.\n\n### Changed\n\n* Now UTC.\n"
    )


@pytest.mark.parametrize(("name", "text"), [("a__bug__md", "x"), ("a__fixed__md", " \n"), ("Notes", "x")])
def test_invalid_fragment_is_refused(tmp_path: Path, name: str, text: str) -> None:
    root = waiting(tmp_path, "# Changelog\n", **{name: text})

    with pytest.raises(SetupError, match=name.replace("__", ".")):
        release("0.2.0", root, DAY)
    assert (root / "changelog.d" / name.replace("__", ".")).exists()

"""Links between the documentation's pages lead somewhere, and its set-up commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("integration_tests/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not (page.parent / target).exists()]

    assert missing == []


def test_the_first_two_shell_blocks_of_the_readme_are_one_known_command_each() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:sh|bash|shell)\n(.*?)```", readme, re.S)

    assert [block.strip() for block in blocks[:2]] == ["python3 dev.py demo", "python3 dev.py test"]


def test_the_script_of_the_readme_lists_its_tiers_without_any_set_up() -> None:
    command = [sys.executable, "dev.py", "help"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    for tier in ("style", "unit", "faults", "spark", "dbt", "spark35", "judge", "demo"):
        assert f"\n  {tier} " in shown.stdout


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]

    assert [
        page.name for page in sorted(ROOT.glob("docs/*.md")) if f": {page.name}\n" not in navigation
    ] == []

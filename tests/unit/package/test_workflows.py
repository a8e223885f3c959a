"""The files of the repository's host say what `dev.py` can do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.environments import NEWEST, OLDEST
from tools.tiers import TIERS

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted([*(ROOT / ".github").rglob("*.yml"), ROOT / ".pre-commit-config.yaml"])


def loaded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / name).read_text("utf-8"))
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_file_can_be_parsed_and_runs_known_tiers_only(file: Path) -> None:
    text = file.read_text("utf-8")
    asked = re.findall(r"dev\.py test((?: [a-z0-9]+)*)$", text, re.M) + re.findall(r"tiers: (.*)", text)

    assert yaml.safe_load(text)
    assert {word for words in asked for word in words.split()} <= {tier.name for tier in TIERS}


def test_continuous_integration_runs_every_tier_on_every_python() -> None:
    jobs = loaded(".github/workflows/ci.yml")["jobs"]
    text = (ROOT / ".github/workflows/ci.yml").read_text("utf-8")
    pythons = [f"{OLDEST[0]}.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1)]

    assert jobs["check"]["strategy"]["matrix"]["python"] == pythons
    assert jobs["spark"]["strategy"]["matrix"]["python"] == pythons
    assert [tier.name for tier in TIERS if not tier.long and not re.search(rf"\b{tier.name}\b", text)] == []


def test_the_long_tiers_run_once_a_week() -> None:
    assert "dev.py test --long" in (ROOT / ".github/workflows/long.yml").read_text("utf-8")


def test_a_release_needs_no_secret() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text("utf-8")

    assert "secrets." not in text
    assert loaded(".github/workflows/release.yml")["jobs"]["publish"]["permissions"] == {"id-token": "write"}

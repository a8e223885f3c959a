"""docs/moving.md says of each config of another adapter what the checks of a run say of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hudi_engine.format.config.unsupported_keys import _FLINK, flink_problem

from dbt.adapters.hudi.model.known_configs import (
    OF_DBT,
    OF_OTHER_ADAPTERS,
    REFUSED,
    REFUSED_OF_MERGES,
    USED,
    unused_configs,
)

PAGE = Path(__file__).parents[3] / "docs" / "moving.md"
ROW = re.compile(r"^\| (.+?) \| (.+?) \|$", re.MULTILINE)
NAME = re.compile(r"`([a-z_]+)`")


def named(start: str) -> list[str]:
    """Configs of the rows whose second cell begins with a word."""
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    return [name for left, right in rows if right.startswith(start) for name in NAME.findall(left)]


@pytest.mark.parametrize("config", named("ignored"))
def test_ignored_configs_name_their_counterpart(config: str) -> None:
    told = unused_configs({config: "x"})
    assert config in OF_OTHER_ADAPTERS or "did you mean" not in told[config]


@pytest.mark.parametrize("config", [each for each in named("refused") if each not in ("file_format",)])
def test_refused_configs_are_refused(config: str) -> None:
    assert config in {**REFUSED, **REFUSED_OF_MERGES}


@pytest.mark.parametrize("config", named("the same"))
def test_same_configs_are_used(config: str) -> None:
    assert config in {*USED, *OF_DBT, "append", "merge", "insert_overwrite", "microbatch", "replace_where"}


FLINK_ROW = re.compile(r"^\| (`[\w.-]+`(?:, `[\w.-]+`)*) \| (.+?) \|$", re.MULTILINE)


def test_options_of_flink_have_the_counterpart_of_the_page() -> None:
    part = PAGE.read_text(encoding="utf-8").partition("## From Flink")[2].partition("\n## ")[0]
    rows = FLINK_ROW.findall(part)
    assert len(rows) > 15
    for left, right in rows:
        for key in re.findall(r"`([\w.-]+)`", left):
            said = flink_problem(key) or ""
            named = re.findall(r"`([^`]+)`", right)[:1]
            assert key in _FLINK and all(each in said for each in named), key

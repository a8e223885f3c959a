"""A run of models that are all wrong: each is answered by name, at once, and nothing is written or started."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.hudi.model.known_configs import (
    OF_DBT,
    OF_OTHER_ADAPTERS,
    USED,
    misspelt_configs,
    unused_configs,
)
from tests.unit.adapter.test_wrong_inputs import WRONG_CONFIGS, edits

# dbt itself refuses these, in words of its own, while it parses
# and of a strategy unlike any of ours it is the node that says that the project has no macro for it
OF_DBT_ITSELF = ("microbatch", "evolve", "zzz")
MISSPELT = 30

# dbt calls these in place of dbt-hudi's; of the second one the relation has the state that as_of says
OWN_NAMES = """
{% macro ref() %}{{ return(shown(builtins.ref(*varargs, **kwargs))) }}{% endmacro %}
{% macro source() %}{{ return(hudi_pinned(builtins.source(*varargs))) }}{% endmacro %}
{% macro shown(relation) %}{% do log(relation) %}{{ return(relation) }}{% endmacro %}
"""
OF_OWN_NAMES = {
    "by_ref": "{{ config(as_of='2026-11-01') }} select * from {{ ref('m0') }}",
    "by_meta": "{{ config(meta={'hudi': {'as_of': '2026-11-01'}}) }} select * from {{ ref('m0') }}",
    "by_source": "{{ config(as_of='2026-11-01') }} select * from {{ source('shop', 'orders') }}",
    "of_today": "{{ config(as_of=none) }} select * from {{ ref('m0') }}",
    "of_none": "{{ config(as_of='2026-11-01') }} select 1 as id",
}


def misspelt() -> list[str]:
    """Config names with one wrong letter, always the same ones."""
    chance = random.Random("wrong project")
    names = chance.sample(sorted(USED), min(MISSPELT, len(USED)))
    known = {*USED, *OF_DBT, *OF_OTHER_ADAPTERS}
    words = [chance.choice(sorted(set(edits(name)) - known - {""})) for name in names * 3]
    return list(dict.fromkeys(words))[:MISSPELT]


def wrong() -> list[tuple[dict[str, Any], str]]:
    """Wrong configs, with what is said of each."""
    kept = [
        (config, answer)
        for config, answer in WRONG_CONFIGS
        if answer and not any(each in repr(config) for each in OF_DBT_ITSELF)
    ]
    catalog = "catalog_name is 'lake', which catalogs.yml does not name, or that file is not next to"
    kept.append(({"catalog_name": "lake"}, catalog))
    return kept + [({word: "x"}, answer_to(word)) for word in misspelt()]


def answer_to(word: str) -> str:
    """Return how the answer to a misspelt config begins: one near a config that decides about rows stops the run."""
    stops = misspelt_configs(unused_configs({word: "x"}))
    return f"{word} is no config of dbt or dbt-hudi" if stops else f"{word}, a config of "


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The project, and what a run of it says where there is no Java."""
    project = tmp_path_factory.mktemp("wrong")
    (project / "models").mkdir()
    (project / "dbt_project.yml").write_text(
        "name: wrong\nprofile: wrong\nflags: {send_anonymous_usage_stats: false}\n"
    )
    (project / "profiles.yml").write_text(
        "wrong: {target: dev, outputs: {dev: {type: hudi, schema: analytics}}}\n"
    )
    for number, (config, _) in enumerate(wrong()):
        given = {"materialized": "incremental", **config}
        (project / "models" / f"m{number}.sql").write_text(f"{{{{ config({given!r}) }}}} select 1 as id")
    (project / "macros").mkdir()
    (project / "macros" / "names.sql").write_text(OWN_NAMES)
    (project / "models" / "sources.yml").write_text("sources: [{name: shop, tables: [{name: orders}]}]")
    for name, sql in OF_OWN_NAMES.items():
        (project / "models" / f"{name}.sql").write_text("{{ config(materialized='table') }} " + sql)
    done = subprocess.run(
        [sys.executable, "-c", "from dbt.cli.main import cli; cli()", "--no-use-colors", "run"],
        cwd=project,
        env={**os.environ, "JAVA_HOME": str(project / "no-java")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode != 0
    return project, done.stdout + done.stderr


def test_there_are_as_many_as_there_should_be() -> None:
    assert len(wrong()) >= 55


@pytest.mark.parametrize("number", range(len(wrong())))
def test_each_is_answered_by_name(run: tuple[Path, str], number: int) -> None:
    _, answer = wrong()[number]
    assert answer in run[1], run[1]


def test_each_misspelt_name_gets_a_near_one(run: tuple[Path, str]) -> None:
    for word in misspelt():
        (line,) = [each for each in run[1].splitlines() if f" {answer_to(word)}" in each]
        assert re.search(r"did you mean '\w+'\?", line), line


def test_an_earlier_state_that_a_macro_of_the_project_would_ignore_is_refused(run: tuple[Path, str]) -> None:
    lines = [each for each in run[1].splitlines() if "would be ignored" in each]
    assert len(lines) == 2
    for name, line in zip(("by_meta", "by_ref"), lines):
        assert f"as_of of {name} would be ignored: the macro ref in macros/names.sql (package wrong)" in line
        assert "Let it return hudi_pinned(...)" in line


def test_nothing_was_written_or_started(run: tuple[Path, str]) -> None:
    project, said = run
    assert not (project / "warehouse").exists()
    assert "Java" not in said and "Traceback" not in said

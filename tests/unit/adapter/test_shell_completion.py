"""What a word typed in the shell may become."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbt.adapters.hudi.shell.prompt import Completion


@pytest.fixture
def completion(tmp_path: Path) -> Completion:
    """Completion in a project with two models, a source and macros."""
    manifest = tmp_path / "manifest.json"
    node = {"package_name": "shop"}
    manifest.write_text(
        json.dumps(
            {
                "nodes": {"a": {**node, "name": "orders"}, "b": {**node, "name": "customers"}},
                "sources": {"c": {**node, "name": "order_events"}},
                "macros": {
                    "d": {"name": "hudi_stats", "package_name": "dbt_hudi"},
                    "e": {"name": "hudi_core", "package_name": "dbt"},
                    "f": {"name": "hudi__say", "package_name": "dbt_hudi"},
                },
            }
        )
    )
    return Completion(["help", "set"], manifest)


@pytest.mark.parametrize(
    ("before", "text", "found"),
    [
        ([], "bui", ["build"]),
        ([], "se", ["seed", "set"]),
        (["dbt"], "bui", ["build"]),
        (["help"], "sn", ["snapshot"]),
        (["run"], "--full", ["--full-refresh"]),
        (["run", "-s"], "ord", ["order_events", "orders"]),
        (["run", "--select", "orders"], "c", ["customers"]),
        (["run-operation"], "hudi_", ["hudi_stats"]),
        (["source"], "fr", ["freshness"]),
        (["nonsense"], "--", []),
    ],
)
def test_words_are_completed_by_where_they_stand(
    completion: Completion, before: list[str], text: str, found: list[str]
) -> None:
    assert completion.candidates(before, text) == found


def test_a_project_that_was_never_parsed_has_no_names(tmp_path: Path) -> None:
    assert Completion([], tmp_path / "manifest.json").candidates(["run", "-s"], "") == []


def test_candidates_come_one_by_one_and_end(completion: Completion) -> None:
    assert [completion.nth("run -s ", "ord", number) for number in range(3)] == [
        "order_events",
        "orders",
        None,
    ]

"""Whether a command may find something to run, told before dbt has read the project."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.hudi.model.foreseen import may_run


def config(root: Path, which: str = "run", **args: Any) -> Any:
    """A run of a command in a project of one model, which dbt has read before."""
    (root / "models" / "staging").mkdir(parents=True, exist_ok=True)
    (root / "models" / "staging" / "orders.sql").write_text("select 1")
    (root / "target").mkdir(exist_ok=True)
    nodes = {"model.shop.old": {"name": "old", "tags": ["daily"], "description": "", "fqn": ["shop", "old"]}}
    (root / "target" / "manifest.json").write_text(json.dumps({"nodes": nodes}))
    return SimpleNamespace(
        project_root=str(root),
        target_path="target",
        model_paths=["models"],
        seed_paths=["seeds"],
        snapshot_paths=["snapshots"],
        test_paths=["tests"],
        analysis_paths=[],
        args=SimpleNamespace(which=which, **args),
    )


@pytest.mark.parametrize(
    ("select", "may"),
    [
        ((), True),
        (("orders",), True),
        (("+orders+1",), True),
        (("2+orders",), True),
        (("@orders",), True),
        (("staging",), True),
        (("shop.staging.orders",), True),
        (("old",), True),
        (("orders.sql",), True),
        (("customers.sql",), False),
        (("tag:daily",), True),
        (("config.materialized:view",), True),
        (("path:models/x.sql",), True),
        (("ord*",), True),
        (("nothing", "orders"), True),
        (("nothing orders",), True),
        (("nothing",), False),
        (("nothing+",), False),
        (("tag:hourly",), False),
        (("orders,tag:hourly",), False),
    ],
)
def test_a_selection_of_names_that_are_nowhere_selects_nothing(
    tmp_path: Path, select: tuple[str, ...], may: bool
) -> None:
    assert may_run(config(tmp_path, select=select)) is may


def test_without_a_manifest_or_a_project_anything_may_be_there(tmp_path: Path) -> None:
    fresh = config(tmp_path, select=("nothing",))
    (tmp_path / "target" / "manifest.json").unlink()
    assert may_run(fresh)
    assert may_run(SimpleNamespace(args=fresh.args)), "dbt debug has a profile only"


def test_a_project_without_files_of_a_kind_runs_none_of_it(tmp_path: Path) -> None:
    assert not may_run(config(tmp_path, "seed"))
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds" / "a.csv").write_text("id\n1\n")
    assert may_run(config(tmp_path, "seed"))
    (tmp_path / "models" / "staging" / "orders.sql").unlink()
    empty = config(tmp_path)
    (tmp_path / "models" / "staging" / "orders.sql").unlink()
    assert not may_run(empty)
    (tmp_path / "dbt_packages").mkdir()
    assert may_run(empty), "packages have models of their own"

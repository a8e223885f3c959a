"""Folders of files as sources, the quick start and the ten lines of the README in processes of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dbt.tests.util import run_dbt

pytestmark = pytest.mark.slow


@pytest.fixture(scope="class")
def writes_artifacts() -> bool:
    return True


ROOT = Path(__file__).resolve().parents[2]
FILE = re.compile(r"```\w+\n(?:#|--) ([\w/]+\.(?:py|yml|sql))\n(.*?)```", re.DOTALL)


class TestFirstSteps:
    def test_quick_start_builds_a_table(self, tmp_path: Path) -> None:
        files = dict(FILE.findall((ROOT / "docs/quickstart.md").read_text("utf-8")))
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text, "utf-8")
        env = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
        for command in (["land.py"], ["-m", "dbt.cli.main", "run"]):
            done = subprocess.run(
                [sys.executable, *command], cwd=tmp_path, env=env, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stdout + done.stderr
        assert "+2 rows" in done.stdout
        assert (tmp_path / "warehouse/analytics/orders/.hoodie/hoodie.properties").exists()

    def test_ten_lines_of_the_readme_build_a_table(self, tmp_path: Path) -> None:
        blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
        (script,) = (each for each in blocks if "dbt run" in each)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        done = subprocess.run(
            ["sh", "-e", "-c", script.replace("pip install .\n", "")],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"},
            capture_output=True,
            text=True,
        )

        assert done.returncode == 0, done.stdout + done.stderr
        assert "+1 rows" in done.stdout or "+1 row" in done.stdout
        assert done.stdout.rstrip().splitlines()[-1].strip()


SOURCES = """
sources:
  - name: landed
    freshness: {warn_after: {count: 1, period: day}}
    tables:
      - {name: orders, external: {location: landing/orders, using: parquet}, columns: [{name: id, data_tests: [not_null]}]}
      - {name: people, external: {location: landing/people.csv, using: csv, options: {header: true, quote: "'"}}}
      - name: events
        meta: {external: {location: "landing/ev'ents", using: json}}
      - {name: wrong, external: {location: landing/orders, using: csv}}
      - {name: header, external: {location: landing/people.csv, using: csv, options: {header: ja, quote: "'"}}}
      - {name: nothing, external: {location: landing/nothing, using: json}}
"""


REFUSED = ("wrong", "header", "nothing")


class TestFoldersOfFiles:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        reads = "select * from {{ source('landed', '%s') }}"
        return {
            "sources.yml": SOURCES,
            **{f"{each}.sql": reads % each for each in ("orders", "people", "events", *REFUSED)},
        }

    def test_they_are_read_and_their_new_files_too(self, project: Any) -> None:
        landing = Path(project.project_root) / "landing"
        land(landing / "orders" / "day=2026-01-01" / "1.parquet", id=[1])
        (landing / "ev'ents").mkdir()
        (landing / "ev'ents" / "1.json").write_text('{"id": 7}\n')
        (landing / "people.csv").write_text("id,name\n1,'A, B'\n")
        results = {each.node.name: each for each in run_dbt(["run"], expect_pass=False)}

        assert "is a Parquet file, but using is 'csv'" in results["wrong"].message
        told = "people.csv as csv with options {header: 'ja'}: header flag can be true or false"
        assert told in results["header"].message
        assert f"there is no folder {landing / 'nothing'}" in results["nothing"].message
        assert tuple(project.run_sql("select * from {schema}.people", fetch="one")) == ("1", "A, B")
        assert project.run_sql("select id from {schema}.events", fetch="one")[0] == 7

        land(landing / "orders" / "day=2026-01-02" / "2.parquet", id=[2, 3])
        run_dbt(["build", "-s", "orders", "source:landed.orders"])
        rows = project.run_sql("select id, cast(day as string) from {schema}.orders order by id", fetch="all")
        assert [tuple(row) for row in rows] == [(1, "2026-01-01"), (2, "2026-01-02"), (3, "2026-01-02")]

        (fresh,) = run_dbt(["source", "freshness", "-s", "source:landed.orders"])
        assert fresh.status == "pass" and fresh.age < 3600
        told = json.loads((Path(project.project_root) / "target" / "sources.json").read_text())
        assert told["results"][0]["status"] == "pass"
        assert "source.test.landed.people" in run_dbt(["docs", "generate"]).sources


class TestAnEphemeralModelOverFiles:
    """Who selects from ephemeral models uses their sources, though dbt compiles those models as nodes of their own."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        ephemeral = "{{ config(materialized='ephemeral') }} "
        return {
            "sources.yml": "sources: [{name: raw, tables: [{name: ev, external: {location: landing/ev, using: parquet}}]}]",
            "inner_one.sql": ephemeral + "select * from {{ source('raw', 'ev') }}",
            "outer_one.sql": ephemeral + "select * from {{ ref('inner_one') }}",
            "first.sql": "select * from {{ ref('outer_one') }}",
            "second.sql": "select * from {{ ref('inner_one') }} union all select * from {{ ref('outer_one') }}",
            "schema.yml": "models: [{name: outer_one, columns: [{name: id, data_tests: [unique]}]}]",
        }

    @pytest.mark.parametrize("chosen", ["test_type:generic", "first", "second"])
    def test_its_children_find_the_source(self, project: Any, chosen: str) -> None:
        land(Path(project.project_root) / "landing" / "ev" / "1.parquet", id=[1, 2])
        results = run_dbt(["build", "-s", chosen])
        assert [str(each.status) for each in results] in (["pass"], ["success"])
        with project.adapter.connection_named("forget"):
            project.adapter.execute("drop table if exists raw.ev")


def land(path: Path, **columns: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)

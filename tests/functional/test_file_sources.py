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
from dbt.tests.util import run_dbt, run_dbt_and_capture

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


DECLARED = """
sources:
  - name: declared
    tables:
      - name: plain
        external: {location: landing/plain, using: csv, options: {header: 'false'}}
        columns: [{name: code, data_type: string}, {name: amount, data_type: int}]
      - name: parts
        external:
          {location: landing/parts, using: csv, options: {header: true}, partitions: [{name: section, data_type: string}]}
      - {name: headless, external: {location: landing/plain, using: csv}}
      - name: few
        external: {location: landing/plain, using: csv}
        columns: [{name: code}]
      - name: odd
        external: {location: landing/plain, using: csv}
        columns: [{name: code, data_type: nosuchtype}, {name: amount}]
"""


class TestDeclaredColumns:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        queries = {"plain": "code, amount", "parts": "id, section", "headless": "*", "few": "*", "odd": "*"}
        return {
            "sources.yml": DECLARED,
            **{
                f"{n}.sql": f"select {q} from {{{{ source('declared', '{n}') }}}}" for n, q in queries.items()
            },
        }

    def test_they_name_files_without_a_header_and_type_folders(self, project: Any) -> None:
        landing = Path(project.project_root) / "landing"
        for path, text in {"plain/1.csv": "01,7\n02,8\n", "parts/section=007/1.csv": "id\n1\n"}.items():
            (landing / path).parent.mkdir(parents=True)
            (landing / path).write_text(text)
        results, said = run_dbt_and_capture(["run"], expect_pass=False)

        failed = {each.node.name: each.message for each in results if str(each.status) == "error"}
        assert list(failed) == ["odd"] and "declared with a type that Spark does not know" in failed["odd"]
        rows = project.run_sql("select code, amount from {schema}.plain order by code", fetch="all")
        assert [tuple(row) for row in rows] == [("01", 7), ("02", 8)]
        assert tuple(project.run_sql("select * from {schema}.parts", fetch="one")) == ("1", "007")
        assert "_c0, _c1, ...: no columns are declared. The option header: true" in said
        assert "1 columns are declared and the files have 2" in said


class TestTimesInNanoseconds:
    """Pandas writes times so; Spark's own reader refuses such files."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        where = "external: {location: landing/%s, using: parquet%s}"
        tables = {
            "flat": where % ("flat", ""),
            "nested": where % ("nested", ""),
            "chosen": where % ("flat", ", options: {mergeSchema: true}"),
        }
        listed = ", ".join(f"{{name: {name}, {place}}}" for name, place in tables.items())
        reads = "{{ config(materialized='table') }} select id, cast(at as timestamp) as at, u from "
        return {
            "sources.yml": f"sources: [{{name: pandas, tables: [{listed}]}}]",
            **{f"{name}.sql": f"{reads}{{{{ source('pandas', '{name}') }}}}" for name in tables},
            "shown.sql": "select u from {{ source('pandas', 'flat') }}",
        }

    def test_they_are_read_as_microseconds(self, project: Any) -> None:
        landing = Path(project.project_root) / "landing"
        values = [1_714_979_289_123_456_789, -1, None]
        at, u = pa.array(values, pa.timestamp("ns")), pa.array(values, pa.timestamp("ns", "UTC"))
        land(landing / "flat" / "1.parquet", id=[1, 2, 3], at=at, u=u)
        land(landing / "nested" / "1.parquet", id=[1, 2, 3], at=at, u=pa.array([[each] for each in u]))
        failed = {each.node.name: each.message for each in run_dbt(["run"], expect_pass=False)}

        assert "u of " in failed["nested"] and "coerce_timestamps='us'" in failed["nested"]
        assert "at, u of " in failed["chosen"] and "not read with options" in failed["chosen"]
        query = "select cast(at as string), cast(u as string) from {schema}.flat order by id"
        read = [("2024-05-06 07:08:09.123456",) * 2, ("1969-12-31 23:59:59.999999",) * 2, (None, None)]
        assert [tuple(row) for row in project.run_sql(query, fetch="all")] == read

        (landing / "flat" / "1.parquet").unlink()
        land(landing / "flat" / "2.parquet", id=[4], at=at.cast("timestamp[us]", safe=False)[:1], u=u[:1])
        run_dbt(["run", "--select", "flat", "shown"])
        assert [tuple(row) for row in project.run_sql(query, fetch="all")] == read[:1]


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

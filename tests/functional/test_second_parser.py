"""Projects as dbt 2 reads them: configs under ``meta``, and the demo by its parser where that program is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.tests.util import run_dbt

ROOT = Path(__file__).parents[2]
PARSER = Path(sysconfig.get_path("scripts")) / "dbt-core-experimental-parser"
SPARK = {"type": "spark", "method": "thrift", "host": "localhost", "port": 10000, "schema": "flights"}

EVENTS = """
{{ config(
    materialized='incremental', unique_key='id', on_schema_change='append_new_columns',
    meta={'owner': 'me', 'hudi': {'table_type': 'mor', 'precombine_field': 'at', 'audit': true, 'index': 'bucket'}}
) }}
select 1 as id, {{ var('at', 5) }} as at, '{{ var("at", 5) }}' as name
"""
EARLIER = "{{ config(materialized='table', meta={'hudi': {'as_of': var('moment', none)}}) }} select * from {{ ref('events') }}"
WATCHED = (
    "{{ config(materialized='view', meta={'hudi': {'audit': true}}) }} select * from {{ ref('events') }}"
)
WRONG = "{{ config(materialized='table', meta={'hudi': {'tabel_type': 'mor'}}) }} select 1 as id"


class TestConfigsUnderMeta:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"events.sql": EVENTS, "earlier.sql": EARLIER, "watched.sql": WATCHED, "wrong.sql": WRONG}

    def test_they_mean_what_they_mean_beside_it(self, project: Any) -> None:
        (first,) = run_dbt(["run", "--select", "events"])
        moment = first.adapter_response["instant"]
        run_dbt(["run", "--select", "events", "--vars", "at: 3"])
        assert project.run_sql("select at, name from {schema}.events", fetch="all") == [(5, "5")]
        run_dbt(["run", "--select", "events", "--vars", "at: 7"])
        assert project.run_sql("select at from {schema}.events", fetch="all") == [(7,)]
        assert project.run_sql("select at from {schema}.events_ro", fetch="all") == [(5,)], "merge-on-read"
        run_dbt(["run", "--select", "earlier", "--vars", f"moment: '{moment}'"])
        assert project.run_sql("select at from {schema}.earlier", fetch="all") == [(5,)]

    def test_a_view_says_that_it_is_not_audited(
        self, project: Any, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run_dbt(["run", "--select", "watched"])
        assert "is a view, which has no commit that tests could stop" in capsys.readouterr().out

    def test_a_key_that_is_none_of_them_is_refused_before_anything_runs(self, project: Any) -> None:
        with pytest.raises(Exception, match="has the key 'tabel_type'.*did you mean 'table_type'"):
            run_dbt(["run", "--select", "wrong"], expect_pass=False)


@pytest.mark.skipif(not PARSER.exists(), reason="the parser of dbt 2 comes with requirements-dbt112.txt")
def test_the_demo_parses_with_the_parser_of_dbt_2(tmp_path: Path) -> None:
    demo = tmp_path / "demo"
    shutil.copytree(
        ROOT / "integration_tests",
        demo,
        ignore=shutil.ignore_patterns("warehouse", "landing", "target", "logs"),
    )
    # The parser has macros of adapters that it knows; those of others are the project's, as docs/moving.md says.
    shutil.copytree(ROOT / "dbt/include/hudi/macros", demo / "macros/hudi")
    for seed, columns in {"airlines": "carrier,name", "airports": "faa,name,tzone"}.items():
        (demo / "seeds").mkdir(exist_ok=True)
        (demo / f"seeds/{seed}.csv").write_text(f"{columns}\n")
    profiles = yaml.safe_load((demo / "profiles.yml").read_text())
    profiles["flights"]["outputs"]["words"] = SPARK
    (demo / "profiles.yml").write_text(yaml.safe_dump(profiles))
    done = subprocess.run(
        [
            "dbt",
            "parse",
            "--use-v2-parser",
            "--v2-parser",
            f"{PARSER} parse --target words",
            "--show-all-deprecations",
        ],
        cwd=demo,
        env={**os.environ, "DBT_ALLOW_EXPERIMENTAL_ADAPTERS": "true", "DBT_PROFILES_DIR": str(demo)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    for word in ("WARNING", "ERROR", "eprecat"):
        assert word not in told, told
    assert (demo / "target/manifest.json").exists()

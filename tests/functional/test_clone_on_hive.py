"""`dbt clone` with a Hive metastore: clones get their names there, and outlive the tables they were made of."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = [pytest.mark.slow, pytest.mark.long]

SPARK_CONF = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dderby.system.durability=test",
    "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName=metastore;create=true",
}
ROWS = """
{%% if is_incremental() %%} select 2 as id, 'changed' as name, 'x' as day union all select 3, 'new', 'y'
{%% else %%} select 1 as id, 'a' as name, 'x' as day union all select 2, 'b', 'x' {%% endif %%}
"""
CONFIG = "{{ config(materialized='incremental', unique_key='id', partition_by='day', table_type='%s') }}"
LOOK = """
{% macro look(schema, drop=none) %}
  {% if drop %}{% do adapter.drop_schema(api.Relation.create(schema=drop)) %}{% endif %}
  {% for table in ['whole', 'logged', 'logged_rt'] %}
    {% set rows = run_query('select id, name from ' ~ schema ~ '.' ~ table ~ ' order by id').rows %}
    {% do log('~~ ' ~ table ~ ' ' ~ rows | map('join', ' ') | join(', '), info=true) %}
  {% endfor %}
{% endmacro %}
"""
FIRST, SECOND = "1 a, 2 b", "1 a, 2 changed, 3 new"
TABLES = ("whole", "logged", "logged_rt")
PROGRAM = """
import sys
from dbt.cli.main import dbtRunner
for words in sys.argv[1:]:
    assert dbtRunner().invoke(words.split("|")).success, words
"""


def dbt(folder: Path, *commands: str) -> str:
    """Run commands in one new process; return what they say."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("DBT_", "PYSPARK_"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *commands],
        cwd=folder,
        env={**kept, "DBT_USE_COLORS": "false"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def looks(said: str) -> list[str]:
    return [line.partition("~~ ")[2].strip() for line in said.splitlines() if "~~ " in line]


def expected(rows: str) -> list[str]:
    return [f"{table} {rows}" for table in TABLES]


def test_clones_have_names_of_their_own_and_outlive_their_originals(tmp_path: Path) -> None:
    target = {"type": "hudi", "catalog": "hive", "threads": 2, "spark_conf": SPARK_CONF}
    outputs = {name: {**target, "schema": name} for name in ("prod", "dev")}
    flags = {"send_anonymous_usage_stats": False}
    files = {
        "profiles.yml": yaml.safe_dump({"shop": {"target": "prod", "outputs": outputs}}),
        "dbt_project.yml": yaml.safe_dump(
            {"name": "shop", "version": "1.0", "profile": "shop", "flags": flags}
        ),
        "models/whole.sql": CONFIG % "cow" + ROWS % (),
        "models/logged.sql": CONFIG % "mor" + ROWS % (),
        "macros/look.sql": LOOK,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    dbt(tmp_path, "run")
    (tmp_path / "target").rename(tmp_path / "state")

    look = "run-operation|look|--args|{schema: %s}"
    assert looks(dbt(tmp_path, "clone|--state|state|--target|dev", look % "dev")) == expected(FIRST)
    assert links(tmp_path) == {2}, "base files are shared"
    said = dbt(
        tmp_path,
        "run|--target|dev",
        look % "dev",
        look % "prod",
        "run-operation|look|--args|{schema: dev, drop: prod}",
    )
    assert looks(said) == expected(SECOND) + expected(FIRST) + expected(SECOND)
    assert not (tmp_path / "warehouse" / "prod" / "whole").exists()
    assert links(tmp_path) == {1}, "only the clones have the files now"


def links(folder: Path) -> set[int]:
    return {each.stat().st_nlink for each in (folder / "warehouse" / "dev").rglob("*.parquet")}

"""dbt projects below an S3 bucket: the engine by its own client, Spark by its."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.format.storage.factory import open_storage

from tests.helpers.connector import spark_conf_for
from tests.helpers.read_table import read_table
from tests.helpers.s3_server import S3Server

pytestmark = pytest.mark.slow

CONFIG = "materialized='incremental', unique_key='id', precombine_field='ts', partition_by=['day']"
ORDERS = f"""
{{{{ config({CONFIG}) }}}}
select cast(id as int) as id, cast({{{{ var('run') }}}} as bigint) as ts, concat('d ', id % 3) as day
from range(0, 10 * {{{{ var('run') }}}}, 1) where id % {{{{ var('run') }}}} = 0
"""
# The partitions' files take no new rows in the second and third run, so that updates make logs.
UPDATED = f"""
{{{{ config({CONFIG}, table_type='merge_on_read', post_hook=["{{{{ hudi_compact(this) }}}}", "{{{{ hudi_clean(this) }}}}"],
    options={{'hoodie.compact.inline.max.delta.commits': 2}}) }}}}
select * from {{{{ ref('orders') }}}} where id < 10
"""
LATEST = """
{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['day']) }}
select * from {{ ref('orders') }} where day = concat('d ', {{ var('run') }} % 3)
"""
DAYS = "{{ config(materialized='view') }} select day, count(*) as n, sum(ts) as ts from {{ ref('updated') }} group by day"
COUNTED = "{{ config(materialized='table') }} select * from {{ ref('days') }}"
HISTORY = """
{% snapshot history %}{{ config(unique_key='id', strategy='check', check_cols=['ts']) }}
select id, ts from {{ ref('orders') }}
{% endsnapshot %}
"""
MODELS = {"orders": ORDERS, "updated": UPDATED, "latest": LATEST, "days": DAYS, "counted": COUNTED}


def test_models_snapshots_and_services_work_in_a_bucket(tmp_path: Path, s3_server: S3Server) -> None:
    root = f"{s3_server.new_bucket()}/ware house"
    write_project(tmp_path, root, spark_conf_for(s3_server))
    expected = Expected()
    for run in (1, 2, 3):
        dbt(tmp_path, "build", "--vars", json.dumps({"run": run}))
        expected.follow(run)
        assert rows(root, "orders") == sorted(expected.orders.values())
        assert rows(root, "updated") == sorted(each for each in expected.orders.values() if each[0] < 10)
        assert rows(root, "latest") == sorted(row for day in expected.latest.values() for row in day)
        assert rows(root, "counted") == expected.counted()
        assert rows(root, "history", "id", "ts", "dbt_valid_to") == sorted(expected.history)
    timeline = open_storage(f"{root}/lake/updated").list(".hoodie")
    assert any(each.name.endswith(".commit") for each in timeline), "a compaction"
    dbt(tmp_path, "run", "--full-refresh", "--vars", json.dumps({"run": 2}))
    assert {ts for _, ts, _ in rows(root, "orders")} == {2}


def test_without_the_connector_dbt_says_what_spark_lacks(tmp_path: Path, s3_server: S3Server) -> None:
    write_project(tmp_path, f"{s3_server.new_bucket()}/wh".replace("s3://", "s3a://"), {})
    done = dbt(tmp_path, "debug", wanted=1)
    assert "spark.jars.packages" in done and "docs/stores.md" in done


class Expected:
    """What the models hold after each run."""

    def __init__(self) -> None:
        self.orders: dict[int, tuple[int, int, str]] = {}
        self.latest: dict[str, list[tuple[int, int, str]]] = {}
        self.history: set[tuple[int, int, bool]] = set()

    def follow(self, run: int) -> None:
        """Let a run happen."""
        for number in range(10 * run):
            if number % run:
                continue
            if number in self.orders:
                old = (number, self.orders[number][1])
                self.history = {(*each[:2], each[2] or each[:2] == old) for each in self.history}
            self.orders[number] = (number, run, f"d {number % 3}")
            self.history.add((number, run, False))
        day = f"d {run % 3}"
        self.latest[day] = [each for each in self.orders.values() if each[2] == day]

    def counted(self) -> list[tuple[str, int, int]]:
        """Return the rows of the table over the view."""
        few = [each for each in self.orders.values() if each[0] < 10]
        days = sorted({day for _, _, day in few})
        return [
            (day, sum(each[2] == day for each in few), sum(ts for _, ts, there in few if there == day))
            for day in days
        ]


def rows(root: str, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """Return rows of a table by the engine's own client; of a moment, whether there is one."""
    found = read_table(open_storage(f"{root}/lake/{table}"))
    names = columns or tuple(name for name in found.column_names if not name.startswith("_hoodie"))
    moments = {"dbt_valid_to"}
    return sorted(
        tuple(row[name] is not None if name in moments else row[name] for name in names)
        for row in found.select(list(names)).to_pylist()
    )


def write_project(folder: Path, root: str, spark_conf: Mapping[str, str]) -> None:
    """Write a project whose tables are below a URI."""
    (folder / "models").mkdir()
    (folder / "snapshots").mkdir()
    for name, text in MODELS.items():
        (folder / "models" / f"{name}.sql").write_text(text)
    (folder / "snapshots" / "history.sql").write_text(HISTORY)
    (folder / "dbt_project.yml").write_text(json.dumps({"name": "bucket", "profile": "bucket"}))
    target = {
        "type": "hudi",
        "schema": "lake",
        "location_root": root,
        "threads": 2,
        "spark_conf": {"spark.ui.enabled": "false", "spark.master": "local[2]", **spark_conf},
    }
    profile = {"bucket": {"target": "dev", "outputs": {"dev": target}}}
    (folder / "profiles.yml").write_text(json.dumps(profile))


def dbt(folder: Path, *arguments: str, wanted: int = 0) -> str:
    """Run dbt as a user does; returns what it says."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("dbt")), *arguments],
        cwd=folder,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == wanted, done.stdout[-4000:] + done.stderr[-2000:]
    assert "not-a-secret" not in done.stdout
    return done.stdout

"""dbt-spark, unchanged, over Thrift: tables, views, merges, snapshots, seeds, full refreshes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hudi_engine.server.server import HudiServer
from pyhive import hive

PROGRAM = Path(__file__).with_name("commands_program.py")
PROJECT = {
    "dbt_project.yml": """
name: thrifty
profile: thrifty
flags: {send_anonymous_usage_stats: false}
models: {+file_format: hudi, +materialized: table}
seeds: {+file_format: hudi, +column_types: {id: bigint}}
snapshots: {+file_format: hudi}
""",
    "seeds/raw_orders.csv": "id,status,at\n1,new,2026-01-01\n2,new,2026-01-01\n",
    "models/orders.sql": """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', options={'primaryKey': 'id'}) }}
select id, status, cast(at as date) at from {{ ref('raw_orders') }}
{% if is_incremental() %} where cast(at as date) >= (select max(at) from {{ this }}) {% endif %}
""",
    "models/by_status.sql": "select status, count(*) orders from {{ ref('orders') }} group by status",
    "models/new_orders.sql": "{{ config(materialized='view') }} select * from {{ ref('orders') }} where status = 'new'",
    "models/schema.yml": """
models:
  - name: orders
    columns: [{name: id, data_tests: [unique, not_null]}]
""",
    "snapshots/history.sql": """
{% snapshot history %}
{{ config(target_schema='thrifty', unique_key='id', strategy='check', check_cols=['status']) }}
select id, status from {{ ref('raw_orders') }}
{% endsnapshot %}
""",
}
LATER = "id,status,at\n1,new,2026-01-01\n2,paid,2026-01-02\n3,new,2026-01-02\n"


@pytest.mark.slow
def test_a_project_of_dbt_spark_runs_as_it_is(
    server: HudiServer, tmp_path: Path, connect: Callable[..., hive.Connection]
) -> None:
    profile = {
        "type": "spark", "method": "thrift", "host": "127.0.0.1", "port": server.port, "auth": "NOSASL",
        "schema": "thrifty", "threads": 2,
    }  # fmt: skip
    PROJECT["profiles.yml"] = yaml.safe_dump({"thrifty": {"target": "dev", "outputs": {"dev": profile}}})
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    program = subprocess.Popen(
        [sys.executable, str(PROGRAM)], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdin is not None and program.stdout is not None

    def dbt(*words: str) -> None:
        program.stdin.write(json.dumps([*words]) + "\n")
        program.stdin.flush()
        shown = []
        for line in program.stdout:
            shown.append(line)
            if line.startswith("RESULT "):
                result = json.loads(line.removeprefix("RESULT "))
                assert result["success"], "".join(shown)
                return
        raise AssertionError("".join(shown))

    def rows(text: str) -> list[tuple[Any, ...]]:
        with connect() as connection:
            cursor = connection.cursor()
            cursor.execute(text)
            return sorted(cursor.fetchall())

    with program:
        dbt("debug")
        dbt("seed")
        dbt("run")
        dbt("snapshot")
        assert rows("select id, status from thrifty.orders") == [(1, "new"), (2, "new")]
        (tmp_path / "seeds/raw_orders.csv").write_text(LATER)
        dbt("seed", "--full-refresh")
        dbt("run")
        dbt("snapshot")
        assert rows("select id, status from thrifty.orders") == [(1, "new"), (2, "paid"), (3, "new")]
        assert rows("select * from thrifty.by_status") == [("new", 2), ("paid", 1)]
        assert rows("select id from thrifty.new_orders") == [(1,), (3,)]
        history = rows("select id, status, dbt_valid_to is null from thrifty.history")
        assert history == [(1, "new", True), (2, "new", False), (2, "paid", True), (3, "new", True)]
        before = rows("select count(*) from thrifty.orders")
        dbt("run", "--full-refresh")
        dbt("test")
        dbt("docs", "generate")
        assert rows("select count(*) from thrifty.orders") == before
        program.stdin.close()

"""dbt-spark, unchanged, over Thrift: tables, views, merges, snapshots, seeds, full refreshes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.server.server import HudiServer
from pyhive import hive

from tests.serve.dbt_program import dbt_over_thrift

PROJECTS = Path(__file__).with_name("projects")
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
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    def rows(text: str) -> list[tuple[Any, ...]]:
        with connect() as connection:
            cursor = connection.cursor()
            cursor.execute(text)
            return sorted(cursor.fetchall())

    with dbt_over_thrift(tmp_path, "thrifty", server.port, "thrifty") as dbt:
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


@pytest.mark.slow
def test_jaffle_shop_is_built_of_hudi_tables(
    server: HudiServer, tmp_path: Path, connect: Callable[..., hive.Connection]
) -> None:
    project = tmp_path / "jaffle_shop"
    shutil.copytree(PROJECTS / "jaffle_shop", project)
    with dbt_over_thrift(project, "jaffle_shop", server.port, "jaffle") as dbt:
        dbt("build")
        dbt("build", "--full-refresh")
        dbt("docs", "generate")
    with connect() as connection:
        cursor = connection.cursor()
        cursor.execute(
            "select count(*), sum(number_of_orders), sum(customer_lifetime_value) from jaffle.customers"
        )
        assert cursor.fetchall() == [(100, 99, 1672)]
        cursor.execute("describe extended jaffle.orders")
        assert ("Provider", "hudi", "") in cursor.fetchall()


@pytest.mark.slow
def test_models_for_hudi_of_dbt_spark_end_as_its_own_tests_expect(
    server: HudiServer, tmp_path: Path, connect: Callable[..., hive.Connection]
) -> None:
    project = tmp_path / "strategies"
    shutil.copytree(PROJECTS / "dbt_spark_hudi", project)
    (project / "dbt_project.yml").write_text("name: strategies\nprofile: strategies\n")
    with dbt_over_thrift(project, "strategies", server.port, "strategies") as dbt:
        dbt("seed")
        dbt("run")
        dbt("run")
    with connect() as connection:

        def rows(table: str) -> list[tuple[Any, ...]]:
            cursor = connection.cursor()
            cursor.execute(f"select * from strategies.{table}")
            return sorted(cursor.fetchall())

        for model, expected in {
            "append_hudi": "append",
            "insert_overwrite_no_partitions": "overwrite",
            "insert_overwrite_partitions": "upsert",
            "merge_no_key": "append",
            "merge_unique_key": "upsert",
            "merge_update_columns": "partial_upsert",
        }.items():
            assert rows(model) == rows(f"expected_{expected}"), model

"""Incremental models whose query reads the model's own rows."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from hudi_engine import HudiTable
from hudi_engine.spark.write import source

pytestmark = pytest.mark.sampled

OF_ITSELF = """
{{ config(materialized='incremental', incremental_strategy='STRATEGY', unique_key='id', table_type='TYPE') }}
select id, id + {{ var('plus', 0) }} as v from range({{ var('rows', 10) }})
{% if is_incremental() %} where id >= (select max(id) - 3 from {{ this }}) and exists (select 1 from {{ this }}) {% endif %}
"""


@pytest.mark.core
class TestQueriesOfTheTableItself:
    """The usual start of an incremental run, a subquery over the model's own rows, in each strategy that reads them twice."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            f"{strategy.replace('+', '_')}_{kind}.sql": OF_ITSELF.replace("STRATEGY", strategy).replace(
                "TYPE", kind
            )
            for strategy in ("upsert", "delete+insert", "insert_new")
            for kind in ("cow", "mor")
        }

    def test_only_newer_rows_come(self, project: Any) -> None:
        run_dbt(["run"])
        run_dbt(["run", "--vars", "{plus: 100, rows: 12}"])
        for name in ("upsert_cow", "upsert_mor", "delete_insert_cow", "delete_insert_mor"):
            (found,) = project.run_sql(f"select count(*), sum(v) from {{schema}}.{name}", fetch="all")
            assert tuple(found) == (12, 66 + 600), name
        for name in ("insert_new_cow", "insert_new_mor"):
            (found,) = project.run_sql(f"select count(*), sum(v) from {{schema}}.{name}", fetch="all")
            assert tuple(found) == (12, 66 + 200), name


CONFIG = "{{ config(materialized='MADE', unique_key='id', conflict_retries=var('retries', 0)) }}"
GROWS = "{% if load_relation(this) %} SQL {% else %} select 1 as id, 1 as n {% endif %}"
# How each reads its own rows, and whether what it writes is made of them.
READS = {
    "counted": ("incremental", "select 1 as id, (select max(n) from {{ this }}) + 1 as n", True),
    "joined": ("incremental", "with own as (select * from {{ this }}) select id, n + 1 as n from own", True),
    "absent": ("incremental", "select 1 as id, 2 as n where 9 not in (select n from {{ this }})", True),
    "replaced": (
        "incremental', incremental_strategy='delete+insert",
        "select id, n + 1 as n from {{ this }}",
        True,
    ),
    "rebuilt": ("table", "select id, n + 1 as n from {{ this }}", True),
    "newest": (
        "incremental",
        "with own as (select max(n) as n from {{ this }}) select 2 as id, 3 as n where 3 > (select n from own)",
        False,
    ),
}
VERSIONS = """
{% snapshot versions %}
{{ config(strategy='check', check_cols=['n'], unique_key='id', target_schema=target.schema,
  conflict_retries=var('retries', 0)) }}
select 1 as id, {{ var('n', 1) }} as n
{% endsnapshot %}
"""


class TestRowsThatAnotherWriterChangesMeanwhile:
    """What is made of rows that are not there any more, when it is to be written, is not written over those that are."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            f"{name}.sql": CONFIG.replace("MADE", made) + GROWS.replace("SQL", sql)
            for name, (made, sql, _) in READS.items()
        }

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"versions.sql": VERSIONS}

    @pytest.fixture
    def meanwhile(self, project: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
        """What another writer does to a table, its name and n, when a query's rows are there and their write has not begun."""
        folder = project.project_root / "warehouse" / project.test_schema
        fetch_small, others = source.fetch_small, []

        def overtaken(batch: Any, options: Any) -> Any:
            rows = fetch_small(batch, options)
            if others:
                name, n = others.pop()
                HudiTable.open(batch.frame.sparkSession, str(folder / name)).update_where("id = 1", {"n": n})
            return rows

        monkeypatch.setattr(source, "fetch_small", overtaken)
        return others

    @pytest.mark.parametrize("name", READS)
    def test_a_model_is_evaluated_again_where_its_rows_are_made_of_them(
        self, project: Any, meanwhile: list[tuple[str, str]], name: str
    ) -> None:
        def rows() -> list[tuple[int, ...]]:
            return sorted(
                tuple(row) for row in project.run_sql(f"select id, n from {{schema}}.{name}", fetch="all")
            )

        is_made_of_them = READS[name][2]
        run_dbt(["run", "-s", name])
        meanwhile.append((name, "5"))
        (result,) = run_dbt(["run", "-s", name], expect_pass=not is_made_of_them)
        if not is_made_of_them:
            assert rows() == [(1, 5), (2, 3)]
            return
        assert (
            "WriteConflictError" in result.message and "With conflict_retries in its config" in result.message
        )
        assert rows() == [(1, 5)]
        meanwhile.append((name, "7"))
        run_dbt(["run", "-s", name, "--vars", "{retries: 1}"])
        assert rows() == [(1, 2 if name == "absent" else 8)]

    def test_a_snapshot_that_another_run_has_changed_ends(
        self, project: Any, meanwhile: list[tuple[str, str]]
    ) -> None:
        run_dbt(["snapshot"])
        meanwhile.append(("versions", "5"))
        (result,) = run_dbt(["snapshot", "--vars", "{n: 2}"], expect_pass=False)
        assert "WriteConflictError" in result.message
        found = project.run_sql("select n, dbt_valid_to is null from {schema}.versions", fetch="all")
        assert [tuple(row) for row in found] == [(5, True)]

    def test_a_snapshot_is_evaluated_again_where_its_config_says_so(
        self, project: Any, meanwhile: list[tuple[str, str]]
    ) -> None:
        run_dbt(["snapshot"])
        meanwhile.append(("versions", "7"))
        run_dbt(["snapshot", "--vars", "{n: 4, retries: 1}"])
        found = project.run_sql("select n from {schema}.versions where dbt_valid_to is null", fetch="all")
        closed = project.run_sql(
            "select n from {schema}.versions where dbt_valid_to is not null", fetch="all"
        )
        assert [tuple(row) for row in found] == [(4,)] and (7,) in [tuple(row) for row in closed]

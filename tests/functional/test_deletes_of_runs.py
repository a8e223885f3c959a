"""Deletes by a flag: the newest row of a key counts, and a run in which no row is the newest is refused."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

from tests.helpers.forms import of_the_gate

FLAGS = {
    "change_type": "if(op = 'D', 'delete', 'update_after') as _change_type",
    "mark": "op = 'D' as __hudi_is_deleted",
    "hoodie_mark": "op = 'D' as _hoodie_is_deleted",
    "marker": "op as kind",
}
MARKER = {"hoodie.payload.delete.field": "kind", "hoodie.payload.delete.marker": "D"}
EXECUTORS = {"hoodie.engine.small.batch.rows": "0"}
MODEL = """
{{{{ config(materialized='{materialized}', unique_key='id', table_type='{kind}', {config}) }}}}
{{% if is_incremental() or not var('base', false) %}}
  select id, ts, {flag} from {{{{ ref('feed') }}}}
{{% else %}}
  select id, 0 as ts, {base} from range(1, 6)
{{% endif %}}
"""
# several rows of a key: the newest deletes, the newest inserts; one row; one delete
FEED = """
{{ config(materialized='view') }}
select * from values (1, 1, 'I'), (1, 2, 'D'), (2, 2, 'I'), (2, 1, 'D'), (3, 1, 'U'), (4, 1, 'D')
{{ var('more', '') }} as t(id, ts, op)
"""
ORDER = "precombine_field='ts',"


def models_of(configs: dict[str, str], kinds: tuple[str, ...] = ("cow", "mor")) -> dict[str, str]:
    """One model for each flag, table type and config."""
    found = {}
    for flag in FLAGS:
        for kind in kinds:
            for name, config in configs.items():
                materialized = "table" if name == "table" else "incremental"
                if materialized == "table" and flag == "change_type":
                    continue  # an ordinary column there
                options = {
                    **(MARKER if flag == "marker" else {}),
                    **(EXECUTORS if name == "executors" else {}),
                }
                found[f"{flag}_{kind}_{name}.sql"] = MODEL.format(
                    materialized=materialized,
                    kind=kind,
                    config=f"{config} hudi_options={options}",
                    flag=FLAGS[flag],
                    base=FLAGS[flag].replace("op", "'I'"),
                )
    return found


def ids(project: Any, name: str) -> list[int]:
    return [row[0] for row in project.run_sql(f"select id from {{schema}}.{name} order by id", fetch="all")]


def stored(project: Any, name: str) -> list[str]:
    rows = project.run_sql(f"describe {{schema}}.{name}", fetch="all")
    return [
        row[0]
        for row in rows
        if row[0] and not (row[0].startswith("_hoodie_") and row[0] != "_hoodie_is_deleted")
    ]


class TestOrderedDeletes:
    @pytest.fixture(scope="class")
    def models(self, pytestconfig: pytest.Config) -> dict[str, str]:
        merging = "merge_update_set_expressions={'ts': 'DBT_INTERNAL_SOURCE.ts'},"
        configs = {"plain": ORDER, "table": ORDER, "clauses": ORDER + merging, "executors": ORDER}
        return {"feed.sql": FEED, **of_the_gate(models_of(configs), pytestconfig)}

    def test_the_newest_row_of_a_key_counts(self, project: Any, models: dict[str, str]) -> None:
        names = [name.removesuffix(".sql") for name in models if name != "feed.sql"]
        run_dbt(["run"])
        assert {name: ids(project, name) for name in names} == dict.fromkeys(names, [2, 3])
        run_dbt(["run", "--full-refresh", "--vars", "{base: true}"])
        run_dbt(["run"])
        later = {name: [2, 3] if name.endswith("table") else [2, 3, 5] for name in names}
        assert {name: ids(project, name) for name in names} == later
        for name in names:
            assert stored(project, name) == ["id", "ts", *(["kind"] if name.startswith("marker") else [])], (
                name
            )


class TestDeletesWithoutAnOrder:
    @pytest.fixture(scope="class")
    def models(self, pytestconfig: pytest.Config) -> dict[str, str]:
        merging = "merge_update_set_expressions={'ts': 'DBT_INTERNAL_SOURCE.ts'},"
        configs = {"plain": "", "table": "", "clauses": merging, "executors": ""}
        return {"feed.sql": FEED, **of_the_gate(models_of(configs), pytestconfig), **TIED}

    def test_they_are_refused_with_the_key(self, project: Any, models: dict[str, str]) -> None:
        names = [name.removesuffix(".sql") for name in models if name != "feed.sql" and name not in TIED]
        refused(run_dbt(["run", "-s", *names, "feed"], expect_pass=False), names, "set precombine_field")
        run_dbt(["run", "-s", *names, "feed", "--vars", "{base: true}"])
        kept = [name for name in names if not name.endswith("table")]
        refused(run_dbt(["run", "-s", *kept], expect_pass=False), kept, "set precombine_field")
        assert {name: ids(project, name) for name in kept} == dict.fromkeys(kept, [1, 2, 3, 4, 5])

    @pytest.mark.parametrize(
        "more", ["(1, 2, 'I')", "(2, null, 'D')"], ids=["a tie", "a delete without a value"]
    )
    def test_so_are_those_that_the_order_does_not_decide(self, project: Any, more: str) -> None:
        names = [name.removesuffix(".sql") for name in TIED]
        results = run_dbt(["run", "-s", *names, "feed", "--vars", f'{{more: ", {more}"}}'], expect_pass=False)
        refused(results, names, "by precombine_field (ts) none is the newest", more[1])


TIED = models_of({"tied": ORDER}, ("mor",))


def refused(results: Any, names: list[str], way_out: str, key: str = "1") -> None:
    failed = {result.node.name: result.message for result in results if result.status == "error"}
    assert sorted(failed) == sorted(names)
    for name, message in failed.items():
        said = "several rows of this run have id '"
        assert said in message and "and one of them deletes" in message and way_out in message, (
            name,
            message,
        )
        assert f"{said}{key}'" in message or key == "1", message


class TestFlagsOfContracts:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        made = models_of({"plain": ORDER, "table": ORDER}, ("cow",))
        made = {
            name: sql.replace("config(", "config(contract={'enforced': true}, on_schema_change='fail', ")
            for name, sql in made.items()
            if not name.startswith("marker")
        }
        columns = "columns: [{name: id, data_type: int}, {name: ts, data_type: int}]"
        listed = "\n".join(f"  - {{name: {name.removesuffix('.sql')}, {columns}}}" for name in made)
        return {"feed.sql": FEED, "models.yml": f"models:\n{listed}", **made}

    def test_a_contract_may_leave_the_flag_out(self, project: Any, models: dict[str, str]) -> None:
        names = [name.removesuffix(".sql") for name in models if name not in ("feed.sql", "models.yml")]
        for _ in range(2):
            run_dbt(["run"])
            assert {name: ids(project, name) for name in names} == dict.fromkeys(names, [2, 3])
        for name in names:
            assert stored(project, name) == ["id", "ts"], name


class TestTablesThatHaveTheMark:
    """An older table, or one of another writer, that has `_hoodie_is_deleted` as a column keeps it."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"feed.sql": FEED, **models_of({"plain": ORDER}, ("cow",))}

    def test_it_stays_a_column(self, project: Any) -> None:
        name = "hoodie_mark_cow_plain"
        project.run_sql(
            f"create table {{schema}}.{name} using hudi tblproperties ('primaryKey' = 'id', 'preCombineField' = 'ts') "
            "as select 5 as id, 0 as ts, false as _hoodie_is_deleted"
        )
        run_dbt(["run", "-s", name, "feed"])
        assert (ids(project, name), stored(project, name)) == ([2, 3, 5], ["id", "ts", "_hoodie_is_deleted"])
        run_dbt(["run", "-s", name, "--full-refresh"])
        assert (ids(project, name), stored(project, name)) == ([2, 3], ["id", "ts"])


INSERTS = {
    "append": ([2], [2, 4]),
    "bulk_insert": ([2], [2, 4]),
    "insert_new": ([2], [2, 4]),
    "insert_overwrite": ([2], [4]),
}


class TestFlagsOfInserts:
    """Strategies that insert leave out the rows whose flag is true, in every run."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        rows = "select id, id % 2 = 1 as __hudi_is_deleted from range({% if is_incremental() %}3, 5{% else %}1, 3{% endif %})"
        keys = {"insert_new": ", unique_key='id'"}
        return {
            f"{name}.sql": f"{{{{ config(materialized='incremental', incremental_strategy='{name}'{keys.get(name, '')}) }}}} {rows}"
            for name in INSERTS
        }

    def test_flagged_rows_are_not_stored(self, project: Any) -> None:
        for number in (0, 1):
            run_dbt(["run"])
            assert {name: ids(project, name) for name in INSERTS} == {
                name: rows[number] for name, rows in INSERTS.items()
            }
            assert all(stored(project, name) == ["id"] for name in INSERTS)

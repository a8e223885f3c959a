"""Configs and rows that a snapshot could not compare: they are right, or refused in the first run."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

from tests.helpers.forms import of_the_gate

SNAPSHOT = """
{{% snapshot {name} %}}
{{{{ config(unique_key={key}, table_type='{kind}', {config}, target_schema=target.schema) }}}}
select * from values {rows} as t (id, grp, status, at, number, tags)
{{% endsnapshot %}}
"""
AT = "timestamp '2026-01-01 10:00:00'"
WHOLE = f"(1, 'g', 'N', {AT}, 5, map('a', 1)), (2, 'g', null, {AT}, null, null)"
NULLS = f"(1, null, 'N', {AT}, 5, map('a', 1)), (2, 'g', 'N', {AT}, 5, map('a', 1))"
CHECK, TIMED = "strategy='check', check_cols=['status', 'number']", "strategy='timestamp', updated_at='at'"
KINDS, DELETES = ("cow", "mor"), ("ignore", "invalidate", "new_record")
FEW = {("cow", "ignore"), ("mor", "new_record")}
RIGHT = {
    "check_twice": ("'id'", "strategy='check', check_cols=['status', 'STATUS', '`number`']"),
    "key_twice": ("['id', 'id']", CHECK),
    "key_twice_timed": ("['id', 'grp', 'id']", TIMED),
    "order_twice": ("'id'", f"{CHECK}, precombine_field='at, at', partition_by=['grp', 'grp']"),
    "times_of_a_text": ("'id'", "strategy='timestamp', updated_at='grp'"),
}
# config of the key, the others, and what the refusal contains
REFUSED = {
    "no_check_col": ("'id'", "strategy='check', check_cols=['nosuch']", "check_cols names 'nosuch'"),
    "expression": (
        "'id'",
        "strategy='check', check_cols=['lower(status)']",
        "check_cols names 'lower(status)'",
    ),
    "map": ("'id'", "strategy='check', check_cols=['tags']", "check_cols 'tags' is map<string,int>"),
    "all_with_map": ("'id'", "strategy='check', check_cols='all'", "check_cols 'tags' is map<string,int>"),
    "no_time": ("'id'", "strategy='timestamp', updated_at='nosuch'", "updated_at is 'nosuch'"),
    "cast_time": (
        "'id'",
        "strategy='timestamp', updated_at='cast(at as date)'",
        "updated_at is 'cast(at as date)'",
    ),
    "map_time": ("'id'", "strategy='timestamp', updated_at='tags'", "updated_at 'tags' is map<string,int>"),
    "no_key": ("['id', 'nosuch']", CHECK, "unique_key is 'nosuch'"),
    "map_key": ("'tags'", TIMED, "unique_key 'tags' is map<string,int>"),
    "number_time": (
        "'id'",
        "strategy='timestamp', updated_at='number', hard_deletes='invalidate'",
        "updated_at 'number' is int, and hard_deletes 'invalidate'",
    ),
}


def snapshot(name: str, key: str, config: str, kind: str, rows: str = WHOLE) -> dict[str, str]:
    return {f"{name}.sql": SNAPSHOT.format(name=name, key=key, config=config, kind=kind, rows=rows)}


def tables(project: Any) -> list[str]:
    return sorted(row[1] for row in project.run_sql("show tables in {schema}", fetch="all"))


class TestSnapshotsThatCanCompare:
    @pytest.fixture(scope="class")
    def snapshots(self, pytestconfig: pytest.Config) -> dict[str, str]:
        made = {}
        for kind in KINDS:
            for deletes in DELETES:
                for name, (key, config) in RIGHT.items():
                    if name not in ("check_twice", "key_twice") and (kind, deletes) not in FEW:
                        continue
                    config = f"{config}, hard_deletes='{deletes}'"
                    made |= snapshot(f"{name}_{kind}_{deletes}", key, config, kind)
        return of_the_gate(made, pytestconfig)

    def test_a_row_that_stays_the_same_keeps_one_version(
        self, project: Any, snapshots: dict[str, str]
    ) -> None:
        for _ in range(3):
            run_dbt(["snapshot"])
        for file in snapshots:
            name = file.removesuffix(".sql")
            query = f"select id, dbt_valid_to is null from {{schema}}.{name} order by id"
            assert project.run_sql(query, fetch="all") == [(1, True), (2, True)], name


class TestSnapshotsThatCannotCompare:
    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        made = {}
        for kind in KINDS:
            for name, (key, config, _) in REFUSED.items():
                made |= snapshot(f"{name}_{kind}", key, config, kind)
        return made

    def test_they_are_refused_in_the_first_run(self, project: Any) -> None:
        results = run_dbt(["snapshot"], expect_pass=False)
        for result in results:
            answer = REFUSED[result.node.name.rpartition("_")[0]][2]
            assert result.status == "error" and answer in result.message, (result.node.name, result.message)
        assert len(results) == len(REFUSED) * len(KINDS) and tables(project) == []


class TestSnapshotsOfKeysWithoutValues:
    @pytest.fixture(scope="class")
    def snapshots(self, pytestconfig: pytest.Config) -> dict[str, str]:
        made = {}
        for kind in KINDS:
            for deletes in DELETES:
                for way, config in {"check": CHECK, "timed": TIMED}.items():
                    for name, key in {"one": "'grp'", "part": "['id', 'grp']", "sql": "'id || grp'"}.items():
                        if name != "part" and (kind, deletes) not in FEW:
                            continue
                        config_of = f"{config}, hard_deletes='{deletes}'"
                        rows = "{{ var('rows') }}"
                        made |= snapshot(f"{way}_{name}_{kind}_{deletes}", key, config_of, kind, rows)
        return of_the_gate(made, pytestconfig)

    def test_they_are_refused_with_their_number_and_a_row(
        self, project: Any, snapshots: dict[str, str]
    ) -> None:
        def run(rows: str, passes: bool) -> list[Any]:
            return list(run_dbt(["snapshot", "--vars", f'{{rows: "{rows}"}}'], expect_pass=passes))

        for first in (True, False):
            results = run(NULLS, False)
            assert len(results) == len(snapshots)
            for result in results:
                said = f"{result.node.name}: 1 row(s) of the query have null in unique_key "
                assert said in result.message and '"id":1,"grp":null,"status":"N"' in result.message, (
                    result.message
                )
            if first:
                assert tables(project) == []
                run(NULLS.replace("null", "'h'"), True)
        for file in snapshots:
            assert project.run_sql(f"select count(*) from {{schema}}.{file[:-4]}", fetch="one")[0] == 2, file

"""What `merge` makes of a row that comes with another partition, by index and by what the model asks of a merge."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest
from dbt.tests.util import run_dbt

from tests.helpers.hudi_rs import rows_by_hudi_rs

FIRST = "select 1 as id, 'a' as name, 10 as ts, 'x' as dt union all select 2, 'b', 10, 'y'"
MOVED = "select 1 as id, 'a2' as name, 20 as ts, 'd' as dt union all select 3, 'c', 20, 'd'"
STAYS = {"hoodie.simple.index.update.partition.path": "false"}
# config beside strategy and key, and the rows after the second run
CASES: dict[str, tuple[dict[str, Any], list[tuple[Any, ...]]]] = {
    "plain": ({}, [(1, "a2", "d"), (2, "b", "y"), (3, "c", "d")]),
    "local": ({"index": "simple"}, [(1, "a", "x"), (1, "a2", "d"), (2, "b", "y"), (3, "c", "d")]),
    "by_record_index": (
        {"index": "record_index", "hudi_options": {"hoodie.write.table.version": "9"}},
        [(1, "a2", "d"), (2, "b", "y"), (3, "c", "d")],
    ),
    "found_in_logs": (
        {"index": "record_index", "hudi_options": {"hoodie.write.table.version": "9"}},
        [(1, "a2", "d"), (2, "b", "y"), (3, "c", "d")],
    ),
    "some": ({"merge_update_columns": ["name"]}, [(1, "a2", "x"), (2, "b", "y"), (3, "c", "d")]),
    "but_its_day": ({"merge_exclude_columns": ["dt"]}, [(1, "a2", "x"), (2, "b", "y"), (3, "c", "d")]),
    "ordered": (
        {"precombine_field": "ts", "matched_condition": "true"},
        [(1, "a2", "d"), (2, "b", "y"), (3, "c", "d")],
    ),
    "clauses": (
        {"matched_condition": "DBT_INTERNAL_DEST.ts < 20", "not_matched_by_source_action": "delete"},
        [(1, "a2", "d"), (3, "c", "d")],
    ),
    "clauses_local": (
        {"index": "simple", "not_matched_by_source_action": "delete"},
        [(1, "a2", "d"), (3, "c", "d")],
    ),
    "kept": ({"hudi_options": STAYS}, [(1, "a2", "x"), (2, "b", "y"), (3, "c", "d")]),
    "clauses_kept": (
        {"hudi_options": STAYS, "matched_condition": "DBT_INTERNAL_SOURCE.ts = 20"},
        [(1, "a2", "x"), (2, "b", "y"), (3, "c", "d")],
    ),
}


def model(config: dict[str, Any], table_type: str) -> str:
    said = {"materialized": "incremental", "incremental_strategy": "merge", "unique_key": "id"}
    said = {**said, "partition_by": "dt", "table_type": table_type, **config}
    arguments = ", ".join(f"{key}={value!r}" for key, value in said.items())
    return f"{{{{ config({arguments}) }}}} {{% if is_incremental() %}}{MOVED}{{% else %}}{FIRST}{{% endif %}}"


FOLLOWED = """
{{ config(materialized='incremental', unique_key='id', partition_by='dt', table_type='KIND', index='record_index',
  hudi_options={'hoodie.write.table.version': 9}) }}
select * from {{ hudi_changes(ref('plain')) }}
"""


class MovedKeys:
    types = ("cow", "mor")

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            f"{name}.sql": model(config, kind)
            for (name, (config, _)), kind in zip(CASES.items(), cycle(self.types))
        } | {"followed.sql": FOLLOWED.replace("KIND", self.types[0])}

    def test_a_row_is_where_its_index_says(self, project: Any) -> None:
        run_dbt(["run"])
        run_dbt(["run"])
        found = {}
        for name in (*CASES, "followed"):
            rows = project.run_sql(
                f"select id, name, dt from {{schema}}.{name} order by id, name", fetch="all"
            )
            found[name] = [tuple(row) for row in rows]
            # the folder of a row, which a filter by the column goes by
            for _, _, day in found[name]:
                there = project.run_sql(
                    f"select count(*) from {{schema}}.{name} where dt = '{day}'", fetch="one"
                )[0]
                assert there == sum(row[2] == day for row in found[name]), name
            base = f"{project.project_root}/warehouse/{project.test_schema}/{name}"
            assert rows_by_hudi_rs(base, ["id", "name", "dt"]) == found[name], name
        assert found == {name: rows for name, (_, rows) in CASES.items()} | {"followed": CASES["plain"][1]}


class TestMovedKeys(MovedKeys):
    pass


@pytest.mark.long
class TestMovedKeysOfTheOtherTypes(MovedKeys):
    types = ("mor", "cow")

"""Each strategy on each table type, partitioned or not, in each mode of on_schema_change, against a few lines of Python.

The gate runs two of each strategy, in table versions 6 and 9; all 128 run with --long, in these and 8 in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, product
from typing import Any

import pytest
from dbt.tests.util import run_dbt

from tests.helpers.hudi_rs import rows_by_hudi_rs

STRATEGIES = (
    "merge",
    "append",
    "bulk_insert",
    "insert_overwrite",
    "insert_overwrite_table",
    "delete+insert",
    "replace_where",
    "insert_new",
)
TYPES, PLACES = ("cow", "mor"), ("dt", None)
MODES = ("ignore", "fail", "append_new_columns", "sync_all_columns")
KEYED = ("merge", "delete+insert", "insert_new")
Row = dict[str, Any]

FIRST: list[Row] = [
    {"id": 1, "dt": "a", "name": "one", "old": "x1"},
    {"id": 2, "dt": "b", "name": "two", "old": "x2"},
]
SECOND: list[Row] = [
    {"id": 2, "dt": "b", "name": "again", "old": "y2", "new": 2},
    {"id": 3, "dt": "b", "name": "three", "old": "y3", "new": 3},
]


@dataclass(frozen=True)
class Combination:
    """One model of the matrix."""

    strategy: str
    table_type: str
    partition: str | None
    mode: str
    version: int

    @property
    def name(self) -> str:
        """Name of its model."""
        words = (self.strategy.replace("+", "_"), self.table_type, self.partition or "whole", self.mode)
        return f"{'_'.join(words)}_v{self.version}"

    @property
    def arriving(self) -> list[Row]:
        """The second run's rows: one column more, and one less where the mode takes that."""
        return [_without(row, "old") if self.mode.endswith("_columns") else row for row in SECOND]

    @property
    def sql(self) -> str:
        """The model."""
        config: dict[str, Any] = {
            "materialized": "incremental",
            "incremental_strategy": self.strategy,
            "table_type": self.table_type,
            "on_schema_change": self.mode,
            "options": {"hoodie.write.table.version": str(self.version)},
        }
        if self.partition:
            config["partition_by"] = self.partition
        if self.strategy in KEYED:
            config["unique_key"] = "id"
        if self.strategy == "replace_where":
            config["incremental_predicates"] = "dt = 'b'"
        given = ", ".join(f"{key}={value!r}" for key, value in config.items())
        runs = f"{{% if is_incremental() %}}{_query(self.arriving)}{{% else %}}{_query(FIRST)}{{% endif %}}"
        return f"{{{{ config({given}) }}}}\n{runs}"

    def after(self) -> list[Row]:
        """What the table holds after both runs."""
        if self.mode == "fail":
            return FIRST
        come = [_without(row, "new") for row in self.arriving] if self.mode == "ignore" else self.arriving
        columns = set(come[0]) | (set(FIRST[0]) if self.mode != "sync_all_columns" else set())
        stored = [{key: value for key, value in row.items() if key in columns} for row in FIRST]
        return [{key: row.get(key) for key in columns} for row in self._applied(stored, come)]

    def _applied(self, stored: list[Row], come: list[Row]) -> list[Row]:
        keys, places = {row["id"] for row in come}, {row["dt"] for row in come}
        if self.strategy == "merge":
            known = {row["id"]: row for row in stored}
            for row in come:
                known[row["id"]] = {**known.get(row["id"], {}), **row}
            return list(known.values())
        if self.strategy == "insert_new":
            return [*stored, *(row for row in come if row["id"] not in {each["id"] for each in stored})]
        if self.strategy == "delete+insert":
            return [*(row for row in stored if row["id"] not in keys), *come]
        overwrites = self.strategy == "insert_overwrite" and self.partition
        if overwrites or self.strategy == "replace_where":
            return [*(row for row in stored if row["dt"] not in places), *come]
        return come if self.strategy.startswith("insert_overwrite") else [*stored, *come]


def _without(row: Row, name: str) -> Row:
    return {key: value for key, value in row.items() if key != name}


def _query(rows: list[Row]) -> str:
    return " union all ".join(
        "select " + ", ".join(f"{value!r} as {key}" for key, value in row.items()) for row in rows
    )


def every() -> list[Combination]:
    all_of_them = product(STRATEGIES, TYPES, PLACES, MODES)
    return [Combination(*each, version) for each, version in zip(all_of_them, cycle((6, 9, 8)))]


def covering() -> Iterator[Combination]:
    """Two of each strategy, with other modes than its neighbour: in turns both types, both places, both versions."""
    for number, strategy in enumerate(STRATEGIES):
        for turn, mode in enumerate(MODES[number % 2 :: 2]):
            place = PLACES[(turn + number // 2) % 2]
            yield Combination(
                strategy, TYPES[(turn + number) % 2], place, mode, (9, 6)[(turn + number // 4) % 2]
            )


class TestMatrix:
    @pytest.fixture(
        scope="class", params=["covering", pytest.param("whole", marks=pytest.mark.long)], autouse=True
    )
    def matrix(self, request: pytest.FixtureRequest) -> list[Combination]:
        return every() if request.param == "whole" else list(covering())

    @pytest.fixture(scope="class")
    def models(self, matrix: list[Combination]) -> dict[str, str]:
        return {f"{each.name}.sql": each.sql for each in matrix}

    def test_two_runs_leave_what_the_dictionary_has(self, project: Any, matrix: list[Combination]) -> None:
        run_dbt(["run"])
        results = {each.node.name: each for each in run_dbt(["run"], expect_pass=False)}
        folder = project.adapter.config.credentials.location_root
        for each in matrix:
            failed = str(results[each.name].status) == "error"
            assert failed == (each.mode == "fail"), f"{each.name}: {results[each.name].message}"
            wanted = each.after()
            columns = sorted(wanted[0])
            expected = sorted((tuple(row[key] for key in columns) for row in wanted), key=str)
            query = f"select {', '.join(columns)} from {{schema}}.{each.name}"
            found = sorted((tuple(row) for row in project.run_sql(query, fetch="all")), key=str)
            assert found == expected, each.name
            if each.mode in ("ignore", "fail"):
                path = f"{folder}/{project.test_schema}/{each.name}"
                judged = sorted(rows_by_hudi_rs(path, columns), key=str)
                assert judged == expected, f"{each.name} by hudi-rs"

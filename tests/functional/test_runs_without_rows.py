"""What a second run whose query has no rows leaves of the table, for every incremental strategy and both table types."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from dbt.tests.util import run_dbt

from tests.functional.test_strategies import CASES, SECOND, model

UNCHANGED = [(1, "a", "x"), (2, "b", "y")]
CHANGED: dict[str, list[tuple[Any, ...]]] = {
    "clauses": [(1, "A", "x"), (2, "B", "y")],
    "clauses_of_one_side": [(1, "A", "x"), (2, "B", "y")],
    "full_sync": [],
    "overwrite_whole": [],
    "overwrite_table": [],
    "replace_where": UNCHANGED[:1],
    "overwrite_where": UNCHANGED[:1],
    "deleting": [],
}
CONFIGS = {
    **{name: config for name, (config, _, _) in CASES.items()},
    "overwrite_table": {"incremental_strategy": "insert_overwrite_table"},
}


class TestRunsWithoutRows:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        nothing = f"select * from ({SECOND}) where id > 9"
        return {
            f"{name}_{kind}.sql": model(second=nothing, table_type=kind, **CONFIGS[name])
            for name, kind in product(CONFIGS, ("cow", "mor"))
        }

    def test_rows_go_where_the_strategy_replaces_more_than_what_comes(self, project: Any) -> None:
        for _ in range(2):
            run_dbt(["run"])
        for name, kind in product(CONFIGS, ("cow", "mor")):
            found = project.run_sql(
                f"select id, name, dt from {{schema}}.{name}_{kind} order by id", fetch="all"
            )
            assert [tuple(row) for row in found] == CHANGED.get(name, UNCHANGED), (name, kind)

"""Failures of data tests kept as tables and views."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.store_test_failures_tests.basic import (
    StoreTestFailuresAsExceptions,
    StoreTestFailuresAsGeneric,
    StoreTestFailuresAsInteractions,
    StoreTestFailuresAsProjectLevelEphemeral,
    StoreTestFailuresAsProjectLevelOff,
    StoreTestFailuresAsProjectLevelView,
)
from dbt.tests.adapter.store_test_failures_tests.test_store_test_failures import (
    BaseStoreTestFailures,
    BaseStoreTestFailuresLimit,
)
from dbt.tests.util import run_dbt


class TestStoreTestFailuresAsInteractions(StoreTestFailuresAsInteractions):
    pass


@pytest.mark.long
class TestStoreTestFailuresAsProjectLevelOff(StoreTestFailuresAsProjectLevelOff):
    pass


@pytest.mark.long
class TestStoreTestFailuresAsProjectLevelView(StoreTestFailuresAsProjectLevelView):
    pass


@pytest.mark.long
class TestStoreTestFailuresAsProjectLevelEphemeral(StoreTestFailuresAsProjectLevelEphemeral):
    pass


@pytest.mark.long
class TestStoreTestFailuresAsGeneric(StoreTestFailuresAsGeneric):
    pass


@pytest.mark.long
class TestStoreTestFailuresAsExceptions(StoreTestFailuresAsExceptions):
    pass


class TestStoreTestFailures(BaseStoreTestFailures):
    pass


@pytest.mark.long
class TestStoreTestFailuresLimit(BaseStoreTestFailuresLimit):
    pass


NOT_HELD = """
select id, timestamp_ntz'2024-01-01 00:00:00' as at, interval '1' day as lasted, null as nothing, map(1, 'a') as numbered
from {{ ref('numbers') }}
"""


class TestColumnsWithoutNames:
    """What a test selects need not be what a table can hold."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"numbers.sql": "{{ config(materialized='table') }} select 1 as id"}

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {
            "counted.sql": "select count(*), id, id from {{ ref('numbers') }} group by id",
            "not_held.sql": NOT_HELD,
            "passes.sql": f"select * from ({NOT_HELD}) where id > 1",
        }

    def test_the_failures_are_kept(self, project: Any) -> None:
        run_dbt(["run"])
        (result,) = run_dbt(["test", "--store-failures", "-s", "counted"], expect_pass=False)
        assert result.failures == 1
        rows = project.run_sql("select * from {schema}_dbt_test__audit.counted", fetch="all")
        assert [tuple(row) for row in rows] == [(1, 1, 1)]

    def test_types_that_a_table_cannot_hold_are_kept_as_text(self, project: Any) -> None:
        run_dbt(["run"])
        words = ["test", "--store-failures", "-s", "not_held", "passes"]
        found = {result.node.name: result for result in run_dbt(words, expect_pass=False)}
        assert {name: (str(one.status), one.failures) for name, one in found.items()} == {
            "not_held": ("fail", 1),
            "passes": ("pass", 0),
        }
        kept = "select string(at), lasted, nothing, numbered from {schema}_dbt_test__audit.not_held"
        (row,) = project.run_sql(kept, fetch="all")
        assert [*row] == ["2024-01-01 00:00:00", "INTERVAL '1' DAY", None, "{1 -> a}"]

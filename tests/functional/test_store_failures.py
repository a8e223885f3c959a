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


class TestColumnsWithoutNames:
    """What a test selects need not be what a table can hold."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"numbers.sql": "{{ config(materialized='table') }} select 1 as id"}

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {"counted.sql": "select count(*), id, id from {{ ref('numbers') }} group by id"}

    def test_the_failures_are_kept(self, project: Any) -> None:
        run_dbt(["run"])
        (result,) = run_dbt(["test", "--store-failures"], expect_pass=False)
        assert result.failures == 1
        rows = project.run_sql("select * from {schema}_dbt_test__audit.counted", fetch="all")
        assert [tuple(row) for row in rows] == [(1, 1, 1)]

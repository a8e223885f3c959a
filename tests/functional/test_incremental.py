"""dbt's incremental suite."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import BaseMergeExcludeColumns
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import BaseIncrementalOnSchemaChange
from dbt.tests.adapter.incremental.test_incremental_unique_id import BaseIncrementalUniqueKey
from dbt.tests.util import run_dbt


@pytest.mark.core
class TestMergeExcludeColumns(BaseMergeExcludeColumns):
    pass


@pytest.mark.core
class TestIncrementalOnSchemaChange(BaseIncrementalOnSchemaChange):
    pass


@pytest.mark.core
class TestIncrementalUniqueKey(BaseIncrementalUniqueKey):
    def fail_to_build_inc_missing_unique_key_column(self, incremental_model_name: str) -> tuple[str, str]:
        """A key that is no column is refused by the first run already, not by the second."""
        run_dbt(["seed", "--select", "seed", "--full-refresh"])
        (result,) = run_dbt(["run", "--select", incremental_model_name, "--full-refresh"], expect_pass=False)
        return result.status, result.message

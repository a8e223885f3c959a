"""dbt's incremental suite."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import BaseMergeExcludeColumns
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import BaseIncrementalOnSchemaChange
from dbt.tests.adapter.incremental.test_incremental_unique_id import BaseIncrementalUniqueKey


@pytest.mark.core
class TestMergeExcludeColumns(BaseMergeExcludeColumns):
    pass


@pytest.mark.core
class TestIncrementalOnSchemaChange(BaseIncrementalOnSchemaChange):
    pass


@pytest.mark.core
class TestIncrementalUniqueKey(BaseIncrementalUniqueKey):
    pass

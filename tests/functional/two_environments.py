"""Two environments of one project, of which the one has the other's state."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.dbt_clone.test_dbt_clone import BaseClone


class TwoEnvironments(BaseClone):
    """dbt's own project of two targets, without its seed and its snapshot."""

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {}

"""CSV seeds."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.simple_seed.test_seed import (
    BaseSeedConfigFullRefreshOff,
    BaseSeedCustomSchema,
    BaseSeedParsing,
    BaseSeedWithEmptyDelimiter,
    BaseSeedWithUniqueDelimiter,
    BaseSeedWithWrongDelimiter,
    BaseSimpleSeedEnabledViaConfig,
    BaseTestEmptySeed,
)
from dbt.tests.util import run_dbt


@pytest.mark.long
class TestSeedConfigFullRefreshOff(BaseSeedConfigFullRefreshOff):
    pass


class TestSeedCustomSchema(BaseSeedCustomSchema):
    pass


@pytest.mark.long
class TestSeedWithUniqueDelimiter(BaseSeedWithUniqueDelimiter):
    pass


class TestSeedWithWrongDelimiter(BaseSeedWithWrongDelimiter):
    def test_seed_with_wrong_delimiter(self, project) -> None:  # noqa: ANN001
        """The header is taken for one column, whose name Hudi cannot hold; the message says so."""
        result = run_dbt(["seed"], expect_pass=False)
        assert "column name 'seed_id|first_" in result.results[0].message
        assert "rename it in the first line of the file" in result.results[0].message


@pytest.mark.long
class TestSeedWithEmptyDelimiter(BaseSeedWithEmptyDelimiter):
    pass


@pytest.mark.long
class TestSimpleSeedEnabledViaConfig(BaseSimpleSeedEnabledViaConfig):
    pass


class TestSeedParsing(BaseSeedParsing):
    pass


class TestSeedWithBOM:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"seed_bom.csv": "\ufeffseed_id,first_name\n1,Larry\n"}

    def test_a_byte_order_mark_is_not_part_of_the_first_column(self, project, unique_schema) -> None:  # noqa: ANN001
        run_dbt(["seed"])
        assert project.run_sql(f"select seed_id, first_name from {unique_schema}.seed_bom", fetch="all") == [
            (1, "Larry")
        ]


class TestTypesOfColumnsInAnotherCase:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"coded.csv": "code;at;n\n007;2026-01-01;1\n1.10;2026-01-02;2\n"}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        types = {"CODE": "string", "At": "string", "n": "int"}
        return {"seeds": {"test": {"coded": {"+column_types": types, "+delimiter": ";"}}}}

    def test_a_text_is_what_the_file_says(self, project: Any) -> None:
        run_dbt(["seed"])
        found = project.run_sql("select * from {schema}.coded order by n", fetch="all")
        assert [tuple(row) for row in found] == [("007", "2026-01-01", 1), ("1.10", "2026-01-02", 2)]


class TestTestEmptySeed(BaseTestEmptySeed):
    pass

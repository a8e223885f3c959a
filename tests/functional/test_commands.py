"""dbt commands and project features."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.aliases.test_aliases import (
    BaseAliasErrors,
    BaseAliases,
    BaseSameAliasDifferentSchemas,
)
from dbt.tests.adapter.concurrency.test_concurrency import BaseConcurrency
from dbt.tests.adapter.dbt_clone.test_dbt_clone import BaseCloneSameTargetAndState
from dbt.tests.adapter.dbt_debug.test_dbt_debug import BaseDebugInvalidProjectPostgres
from dbt.tests.adapter.dbt_show.test_dbt_show import BaseShowLimit, BaseShowSqlHeader
from dbt.tests.adapter.empty.test_empty import (
    BaseTestEmpty,
    BaseTestEmptyInlineSourceRef,
    BaseTestEmptySeedFlag,
)
from dbt.tests.adapter.ephemeral.test_ephemeral import BaseEphemeralErrorHandling
from dbt.tests.adapter.hooks.test_model_hooks import BaseDuplicateHooksInConfigs, BaseHooksRefsOnSeeds
from dbt.tests.adapter.relations.test_changing_relation_type import BaseChangeRelationTypeValidator
from dbt.tests.adapter.relations.test_dropping_schema_named import BaseDropSchemaNamed
from dbt.tests.adapter.sample_mode.test_sample_mode import BaseSampleModeTest
from dbt.tests.adapter.unit_testing.test_case_insensitivity import BaseUnitTestCaseInsensivity
from dbt.tests.adapter.unit_testing.test_invalid_input import BaseUnitTestInvalidInput
from dbt.tests.adapter.unit_testing.test_types import (
    BaseUnitTestingTypes,
    BaseUnitTestingVarcharFixtureNoTruncation,
)
from dbt.tests.util import run_dbt_and_capture
from dbt.version import __version__ as dbt_version
from packaging.version import parse


@pytest.fixture(scope="class")
def writes_artifacts() -> bool:
    return True


class TestShowLimit(BaseShowLimit):
    pass


@pytest.mark.long
class TestShowSqlHeader(BaseShowSqlHeader):
    pass


class TestDebugInvalidProjectPostgres(BaseDebugInvalidProjectPostgres):
    pass


class TestEmpty(BaseTestEmpty):
    pass


@pytest.mark.long
class TestEmptyInlineSourceRef(BaseTestEmptyInlineSourceRef):
    pass


@pytest.mark.skipif(parse(dbt_version) < parse("1.12"), reason="seed --empty came with dbt-core 1.12")
class TestEmptySeedFlag(BaseTestEmptySeedFlag):
    pass


@pytest.mark.long
class TestEphemeralErrorHandling(BaseEphemeralErrorHandling):
    pass


@pytest.mark.core
class TestConcurrency(BaseConcurrency):
    pass


class TestChangeRelationTypeValidator(BaseChangeRelationTypeValidator):
    pass


class TestDropSchemaNamed(BaseDropSchemaNamed):
    pass


class TestSampleModeTest(BaseSampleModeTest):
    pass


@pytest.mark.long
class TestAliasErrors(BaseAliasErrors):
    pass


class TestCloneSameTargetAndState(BaseCloneSameTargetAndState):
    def test_clone_same_target_and_state(self, project, unique_schema, other_schema) -> None:  # noqa: ANN001
        """dbt warns; the relations are the target's own, so nothing happens to them."""
        self.run_and_save_state(project.project_root)
        before = project.run_sql(f"select * from {unique_schema}.table_model", fetch="all")
        _, output = run_dbt_and_capture(["clone", "--defer", "--state", "target"])
        assert "The state and target directories are the same: 'target'" in output
        assert project.run_sql(f"select * from {unique_schema}.table_model", fetch="all") == before


@pytest.mark.long
class TestUnitTestCaseInsensivity(BaseUnitTestCaseInsensivity):
    pass


@pytest.mark.long
class TestUnitTestInvalidInput(BaseUnitTestInvalidInput):
    pass


@pytest.mark.long
class TestUnitTestingVarcharFixtureNoTruncation(BaseUnitTestingVarcharFixtureNoTruncation):
    pass


ALIAS_MACROS = {
    "cast.sql": "{% macro string_literal(s) -%} cast('{{ s }}' as string) {%- endmacro %}",
    "expect_value.sql": "{% test expect_value(model, field, value) %}"
    "select * from {{ model }} where {{ field }} != '{{ value }}'{% endtest %}",
}


class TestAliases(BaseAliases):
    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return ALIAS_MACROS


@pytest.mark.long
class TestSameAliasDifferentSchemas(BaseSameAliasDifferentSchemas):
    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return ALIAS_MACROS


class TestHooksRefsOnSeeds(BaseHooksRefsOnSeeds):
    pass


@pytest.mark.long
class TestDuplicateHooksInConfigs(BaseDuplicateHooksInConfigs):
    pass


class TestUnitTestingTypes(BaseUnitTestingTypes):
    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        return SOME_TYPES


@pytest.mark.long
class TestUnitTestingFurtherTypes(BaseUnitTestingTypes):
    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        return FURTHER_TYPES


SOME_TYPES = [
    ["1", "1"],
    ["timestamp '2013-11-03 00:00:00-0'", "2013-11-03 00:00:00-0"],
    ["array(1, 2, 3)", "'array(1, 2, 3)'"],
    ["map('10', 't', '15', 'f')", '\'map("10", "t", "15", "f")\''],
]
FURTHER_TYPES = [
    ["2.0", "2.0"],
    ["'12345'", "12345"],
    ["'string'", "string"],
    ["true", "true"],
    ["date '2011-11-11'", "2011-11-11"],
]

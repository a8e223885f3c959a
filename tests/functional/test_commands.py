"""dbt commands and project features."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.aliases.test_aliases import BaseAliasErrors
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
from dbt.tests.adapter.relations.test_changing_relation_type import BaseChangeRelationTypeValidator
from dbt.tests.adapter.relations.test_dropping_schema_named import BaseDropSchemaNamed
from dbt.tests.adapter.sample_mode.test_sample_mode import BaseSampleModeTest
from dbt.tests.adapter.unit_testing.test_case_insensitivity import BaseUnitTestCaseInsensivity
from dbt.tests.adapter.unit_testing.test_invalid_input import BaseUnitTestInvalidInput
from dbt.tests.adapter.unit_testing.test_types import BaseUnitTestingVarcharFixtureNoTruncation


class TestShowLimit(BaseShowLimit):
    pass


class TestShowSqlHeader(BaseShowSqlHeader):
    pass


class TestDebugInvalidProjectPostgres(BaseDebugInvalidProjectPostgres):
    pass


class TestTestEmpty(BaseTestEmpty):
    pass


class TestTestEmptyInlineSourceRef(BaseTestEmptyInlineSourceRef):
    pass


class TestTestEmptySeedFlag(BaseTestEmptySeedFlag):
    pass


class TestEphemeralErrorHandling(BaseEphemeralErrorHandling):
    pass


@pytest.mark.core
class TestConcurrency(BaseConcurrency):
    pass


@pytest.mark.core
class TestChangeRelationTypeValidator(BaseChangeRelationTypeValidator):
    pass


class TestDropSchemaNamed(BaseDropSchemaNamed):
    pass


class TestSampleModeTest(BaseSampleModeTest):
    pass


class TestAliasErrors(BaseAliasErrors):
    pass


class TestCloneSameTargetAndState(BaseCloneSameTargetAndState):
    pass


class TestUnitTestCaseInsensivity(BaseUnitTestCaseInsensivity):
    pass


class TestUnitTestInvalidInput(BaseUnitTestInvalidInput):
    pass


class TestUnitTestingVarcharFixtureNoTruncation(BaseUnitTestingVarcharFixtureNoTruncation):
    pass

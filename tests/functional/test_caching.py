"""Which relations dbt remembers."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.caching.test_caching import (
    BaseCachingLowercaseModel,
    BaseCachingSelectedSchemaOnly,
    BaseCachingUppercaseModel,
    BaseNoPopulateCache,
)
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtRuntimeError


class OneCachedRelation:
    """The inherited check compares databases, which two-part names do not have."""

    def run_and_inspect_cache(self, project: Any, run_args: list[str]) -> None:
        seen = []
        for _ in range(2):
            run_dbt(run_args)
            (relation,) = project.adapter.cache.relations
            assert relation.schema == project.test_schema
            seen.append(relation.identifier.lower())
        assert seen[0] == seen[1]


@pytest.mark.long
class TestCachingLowercaseModel(OneCachedRelation, BaseCachingLowercaseModel):
    pass


class TestCachingUppercaseModel(OneCachedRelation, BaseCachingUppercaseModel):
    pass


@pytest.mark.long
class TestCachingSelectedSchemaOnly(OneCachedRelation, BaseCachingSelectedSchemaOnly):
    pass


@pytest.mark.long
class TestNoPopulateCache(OneCachedRelation, BaseNoPopulateCache):
    pass


class TestSchemaInCapitals:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"grows.sql": "{{ config(materialized='incremental', schema='Capital') }} select 1 as id"}

    def test_a_later_run_finds_its_table(self, project: Any) -> None:
        for rows in (1, 2):
            run_dbt(["run"])
            found = project.run_sql("select count(*) from {schema}_Capital.grows", fetch="one")
            assert found[0] == rows


class TestNodesThatAreNotRun:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"good.sql": "select 1 as id", "bad.sql": "{{ config(table_type='heap') }} select 1 as id"}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        look = "{% do adapter.check_schema_exists(target.database, 'audit') %}"
        return {"models": {"+materialized": "table"}, "on-run-start": [look]}

    def test_a_hook_that_looks_for_a_schema_does_not_have_them_checked(self, project: Any) -> None:
        run_dbt(["run", "-s", "good"])
        with pytest.raises(DbtRuntimeError, match="heap"):
            run_dbt(["run"])


class TestKindsThatChange:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        told = "select '{{ load_relation(ref('changes')).type }}' as told"
        return {
            "changes.sql": "{{ config(materialized=var('kind')) }} select 1 as id",
            "asks.sql": "{{ config(materialized='view') }} " + told,
        }

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        hook = "create or replace view {{ this }}_told as select '{{ load_relation(this).type }}' as told"
        return {"models": {"test": {"changes": {"+post-hook": hook}}}, "vars": {"kind": "view"}}

    @pytest.mark.parametrize(
        ("kind", "told"),
        [("view", "view"), ("table", "table"), ("view", "view"), ("incremental", "table")],
    )
    def test_the_hooks_of_a_model_and_later_models_know_what_it_has_become(
        self, project: Any, kind: str, told: str
    ) -> None:
        run_dbt(["run", "--vars", f"kind: {kind}"])
        for name in ("changes_told", "asks"):
            assert project.run_sql(f"select told from {{schema}}.{name}", fetch="one")[0] == told


class TestNamesInCapitalsAndQuotes:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"quoting": {"identifier": True, "schema": True}}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        sql = "{{ config(materialized='%s', schema='Capital') }} select 1 as id"
        kinds = ("incremental", "table", "view")
        return {f"{kind.capitalize()}s.sql": sql % kind for kind in kinds}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        config = "config(target_schema=schema, unique_key='id', strategy='check', check_cols='all')"
        sql = "{% snapshot Versions %} {{ CONFIG }} select * from {{ ref('Tables') }} {% endsnapshot %}"
        return {"versions.sql": sql.replace("CONFIG", config)}

    def test_a_later_run_finds_what_an_earlier_one_made(self, project: Any) -> None:
        for rows in (1, 2):
            run_dbt(["build"])
            for name, expected in (("Incrementals", rows), ("Tables", 1), ("Views", 1)):
                found = project.run_sql(f"select count(*) from {{schema}}_Capital.{name}", fetch="one")
                assert found[0] == expected, name
            assert project.run_sql("select count(*) from {schema}.Versions", fetch="one")[0] == 1
        found = project.adapter.get_relation(None, project.test_schema, "VERSIONS")
        assert found.identifier.lower() == "versions"
        assert project.adapter.get_relation(None, project.test_schema, "Version") is None

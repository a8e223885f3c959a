"""Hooks, seeds and functions whose fixtures speak of Postgres: those speak of Spark here, the assertions are the suite's."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.functions import test_udfs as functions
from dbt.tests.adapter.hooks import test_model_hooks as model_hooks
from dbt.tests.adapter.hooks import test_run_hooks as run_hooks
from dbt.tests.adapter.simple_seed import fixtures as seed_files
from dbt.tests.adapter.simple_seed import seeds as seed_rows
from dbt.tests.adapter.simple_seed import test_seed as seeds
from dbt.tests.adapter.simple_seed import test_seed_type_override as seed_types
from pyspark import __version__


def check_of_spark(ctx: dict[str, Any], state: str, project: Any) -> None:
    """What the suite expects of a hook's row, with this profile's words; a target without a server has no host."""
    expected = {
        "test_state": state,
        "target_dbname": "",
        "target_host": "",
        "target_name": "default",
        "target_schema": project.test_schema,
        "target_threads": 4,
        "target_type": "hudi",
        "target_user": "tester",
        "target_pass": "",
    }
    assert {key: ctx[key] for key in expected} == expected
    assert ctx["run_started_at"] and ctx["invocation_id"]
    assert ctx["thread_id"].startswith("Thread-") or ctx["thread_id"] == "MainThread"


class SparksWords:
    """Spark has no VACUUM: another statement without effect stands in for it."""

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        given = {"sql": "describe {{ this.schema }}.on_model_hook", "transaction": False}
        hooks = {
            "pre-hook": [model_hooks.MODEL_PRE_HOOK, given],
            "post-hook": [given, model_hooks.MODEL_POST_HOOK],
        }
        return {"models": {"test": hooks}}

    def check_hooks(self, state: str, project: Any, host: object, count: int = 1) -> None:
        for ctx in self.get_ctx_vars(state, count=count, project=project):  # type: ignore[attr-defined]
            check_of_spark(ctx, state, project)


class TestModelHooks(SparksWords, model_hooks.BasePrePostModelHooks):
    pass


class TestHookRefs(model_hooks.BaseHookRefs):
    check_hooks = SparksWords.check_hooks


class TestModelHooksInConfig(model_hooks.BasePrePostModelHooksInConfig):
    check_hooks = SparksWords.check_hooks


class TestModelHooksInConfigWithCount(SparksWords, model_hooks.BasePrePostModelHooksInConfigWithCount):
    pass


class TestModelHooksInConfigKwargs(model_hooks.BasePrePostModelHooksInConfigKwargs):
    check_hooks = SparksWords.check_hooks


class TestRunHooks(run_hooks.BasePrePostRunHooks):
    """Names have two parts, so there is no database to note."""

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        def of_schemas(verb: str) -> str:
            pairs = "('{{ db or '' }}', '{{ schema }}' ){% if not loop.last %},{% endif %}{% endfor %}"
            return f"{verb} {{% for db, schema in database_schemas %}}{pairs}"

        own = "{{{{ custom_run_hook('{}', target, run_started_at, invocation_id) }}}}"
        ordered = [
            "create table {{{{ target.schema }}}}.{}_hook_order_test ( id int )",
            "drop table {{{{ target.schema }}}}.{}_hook_order_test",
        ]
        values = "values {% for schema in schemas %}( '{{ schema }}' ){% if not loop.last %},{% endif %}{% endfor %}"
        return {
            "on-run-start": [
                *(each.format("start") for each in (own, *ordered)),
                "{{ log(env_var('TERM_TEST'), info=True) }}",
            ],
            "on-run-end": [
                *(each.format("end") for each in (own, *ordered)),
                "create table {{ target.schema }}.schemas ( schema string )",
                f"insert into {{{{ target.schema }}}}.schemas (schema) {values}",
                "create table {{ target.schema }}.db_schemas ( db string, schema string )",
                of_schemas("insert into {{ target.schema }}.db_schemas (db, schema) values"),
            ],
            "seeds": {"quote_columns": False},
        }

    def check_hooks(self, state: str, project: Any, host: object) -> None:
        check_of_spark(self.get_ctx_vars(state, project), state, project)

    def assert_used_schemas(self, project: Any) -> None:
        kept = project.database
        try:
            project.database = ""
            super().assert_used_schemas(project)
        finally:
            project.database = kept


class ViewsOutliveTheirTable:
    """A full refresh of a seed replaces its rows; what reads it by name goes on."""

    def _check_relation_end_state(self, run_result: Any, project: Any, exists: bool) -> None:
        super()._check_relation_end_state(run_result, project, exists=True)  # type: ignore[misc]


class TestBasicSeeds(ViewsOutliveTheirTable, seeds.BaseBasicSeedTests):
    pass


class TestSeedConfigFullRefreshOn(ViewsOutliveTheirTable, seeds.BaseSeedConfigFullRefreshOn):
    pass


class TestSeedSpecificFormats(seeds.BaseSeedSpecificFormats):
    """A dot cannot stand in a name of Spark."""

    @pytest.fixture(scope="class")
    def test_data_dir(self, tmp_path_factory: pytest.TempPathFactory) -> Any:
        return tmp_path_factory.mktemp("big") / "data"

    @pytest.fixture(scope="class")
    def seeds(self, test_data_dir: Any) -> Any:
        yield {
            "big_seed.csv": self._make_big_seed(test_data_dir).read_text(),
            "seed_with_dots.csv": seed_rows.seed__with_dots_csv,
            "seed_unicode.csv": seed_rows.seed__unicode_csv,
        }


class TestSeedColumnOverride(seed_types.BaseSimpleSeedColumnOverride):
    @staticmethod
    def seed_enabled_types() -> dict[str, str]:
        return {"seed_id": "string", "birthday": "date"}

    @staticmethod
    def seed_tricky_types() -> dict[str, str]:
        return dict.fromkeys(("seed_id_str", "looks_like_a_bool", "looks_like_a_date"), "string")

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        kinds = {
            "timestamp without time zone": "timestamp",
            "type: text": "type: string",
            "type: integer": "type: bigint",
        }
        told = seed_files.properties__schema_yml
        for theirs, ours in kinds.items():
            told = told.replace(theirs, ours)
        return {"schema.yml": told}


spark4 = pytest.mark.skipif(__version__.startswith("3."), reason="SQL functions came with Spark 4")


@spark4
class TestStableUDF(functions.StableUDF):
    """Spark knows no STABLE: dbt warns, and the function says nothing of it."""

    def check_function_volatility(self, sql: str) -> None:
        assert "STABLE" not in sql and "DETERMINISTIC" not in sql


@spark4
class TestNonDeterministicUDF(functions.NonDeterministicUDF):
    def check_function_volatility(self, sql: str) -> None:
        assert "NOT DETERMINISTIC" in sql

"""Classes whose fixtures or expected texts are another database's: those are Spark's here, the assertions are the suite's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.aliases import test_aliases as aliases
from dbt.tests.adapter.basic import expected_catalog
from dbt.tests.adapter.basic import test_docs_generate as docs
from dbt.tests.adapter.basic import test_get_catalog_for_single_relation as single
from dbt.tests.adapter.dbt_show import test_dbt_show as show
from dbt.tests.adapter.empty import _models as empty_models
from dbt.tests.adapter.empty import test_empty as empty
from dbt.tests.adapter.ephemeral import test_ephemeral as ephemeral
from dbt.tests.adapter.incremental import test_incremental_microbatch as microbatch
from dbt.tests.adapter.incremental import test_incremental_predicates as predicates
from dbt.tests.adapter.persist_docs import test_persist_docs as persist_docs
from dbt.tests.adapter.python_model import test_spark as python_models
from dbt.tests.adapter.simple_copy import test_copy_uppercase as uppercase
from dbt.tests.adapter.simple_copy import test_simple_copy as simple_copy
from dbt.tests.adapter.simple_snapshot import test_ephemeral_snapshot_hard_deletes as snapshots
from dbt.tests.adapter.unit_testing import test_quoted_reserved_word_column_names as reserved
from dbt.tests.adapter.utils import fixture_get_intervals_between as intervals_files
from dbt.tests.adapter.utils import test_get_intervals_between as intervals
from dbt.tests.adapter.utils import test_timestamps as timestamps
from dbt.tests.util import check_relations_equal, run_dbt
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, TableMetadata


class TestSameAliasDifferentDatabases(aliases.BaseSameAliasDifferentDatabases):
    """Names have two parts, so the two databases are two schemas."""

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {
            "cast.sql": "{% macro string_literal(s) -%} cast('{{ s }}' as string) {%- endmacro %}",
            "expect_value.sql": "{% test expect_value(model, field, value) %}select * from {{ model }}"
            " where {{ field }} != '{{ value }}'{% endtest %}",
        }


# --- docs -----------------------------------------------------------------------------------------------------------


class HudiStats:
    """Equals the statistics of a Hudi table: what the adapter documents is there, each with a value."""

    wanted = frozenset({"has_stats", "table_type", "bytes", "files"})

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, dict)
        return self.wanted <= set(other) and all(each["value"] is not None for each in other.values())

    __hash__ = None  # type: ignore[assignment]


WORDS = {
    "role": None,
    "id_type": "bigint",
    "text_type": "string",
    "time_type": "timestamp",
    "view_type": "view",
    "table_type": "table",
}


class TestDocsGenerate(docs.BaseDocsGenerate):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any) -> Any:
        none = expected_catalog.no_stats()
        return expected_catalog.base_expected_catalog(
            project, model_stats=none, seed_stats=HudiStats(), **WORDS
        )


class TestDocsGenReferences(docs.BaseDocsGenReferences):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any) -> Any:
        return expected_catalog.expected_references_catalog(
            project,
            bigint_type="bigint",
            model_stats=HudiStats(),
            seed_stats=HudiStats(),
            view_summary_stats=expected_catalog.no_stats(),
            **WORDS,
        )


class TestGetCatalogForSingleRelation(single.BaseGetCatalogForSingleRelation):
    TYPES = {
        "id": "bigint",
        "first_name": "string",
        "email": "string",
        "ip_address": "string",
        "updated_at": "timestamp",
    }

    def expected(self, project: Any, name: str, kind: str) -> CatalogTable:
        columns = {
            column: ColumnMetadata(type=dtype, index=number, name=column)
            for number, (column, dtype) in enumerate(self.TYPES.items(), start=1)
        }
        return CatalogTable(TableMetadata(kind, project.test_schema, name), columns, {})

    @pytest.fixture(scope="class")
    def expected_catalog_my_seed(self, project: Any) -> Any:
        return WithoutStats(self.expected(project, "my_seed", "table"))

    @pytest.fixture(scope="class")
    def expected_catalog_my_view_model(self, project: Any) -> Any:
        return WithoutStats(self.expected(project, "my_view_model", "view"))


class WithoutStats:
    """Equals a catalog entry whatever its statistics are."""

    def __init__(self, entry: CatalogTable) -> None:
        self.entry = entry

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, CatalogTable)
        return (other.metadata, other.columns) == (self.entry.metadata, self.entry.columns)

    __hash__ = None  # type: ignore[assignment]


class TestPersistDocsCommentOnQuotedColumn(persist_docs.BasePersistDocsCommentOnQuotedColumn):
    """A column of a Hudi table cannot begin with a digit (Avro); a reserved word needs the quotes as well."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"quote_model.sql": 'select 1 as {{ adapter.quote("from") }}'}

    @pytest.fixture(scope="class")
    def properties(self) -> dict[str, str]:
        return {"properties.yml": persist_docs.fixtures._PROPERTIES__QUOTE_MODEL.replace("2id", "from")}

    @pytest.fixture(scope="class")
    def run_has_comments(self, project: Any) -> Any:
        def run() -> None:
            run_dbt()
            run_dbt(["docs", "generate"])
            nodes = json.loads(Path("target/catalog.json").read_text())["nodes"]
            assert nodes["model.test.quote_model"]["columns"]["from"]["comment"].startswith("XXX")

        return run


# --- columns and constraints ----------------------------------------------------------------------------------------


# --- models ---------------------------------------------------------------------------------------------------------


class TestShowDoesNotHandleDoubleLimit(show.BaseShowDoesNotHandleDoubleLimit):
    DATABASE_ERROR_MESSAGE = "[PARSE_SYNTAX_ERROR] Syntax error at or near"


class TestMetadataWithEmptyFlag(empty.MetadataWithEmptyFlag):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        retyped = empty_models.ALTER_COLUMN_TYPE.replace('"MY_VALUE", "varchar"', '"my_value", "string"')
        added = empty_models.ALTER_RELATION_ADD_REMOVE_COLUMNS.replace('"varchar"', '"string"')
        return {
            "schema.yml": empty_models.SCHEMA,
            "control.sql": empty_models.CONTROL,
            "get_columns_in_relation.sql": empty_models.GET_COLUMNS_IN_RELATION,
            "alter_column_type.sql": retyped,
            "alter_relation_comment.sql": empty_models.ALTER_RELATION_COMMENT,
            "alter_column_comment.sql": empty_models.ALTER_COLUMN_COMMENT,
            "alter_relation_add_remove_columns.sql": added,
            "truncate_relation.sql": empty_models.TRUNCATE_RELATION,
        }


def squeezed(sql: str) -> str:
    """SQL without blanks and without the digits of generated names."""
    return "".join(re.sub(r"\d+", "", sql).split())


class TestEphemeralMulti(ephemeral.BaseEphemeralMulti):
    def test_ephemeral_multi(self, project: Any) -> None:
        run_dbt(["seed"])
        assert len(run_dbt(["run"])) == 3
        for model in ("dependent", "double_dependent", "super_dependent"):
            check_relations_equal(project.adapter, ["seed", model])
        said = Path("target/run/test/models/double_dependent.sql").read_text()
        assert squeezed(said) == squeezed(
            f"create or replace view {project.test_schema}.double_dependent as with __dbt__cte__base as "
            f"(select * from {project.test_schema}.seed), __dbt__cte__base_copy as (select * from __dbt__cte__base)"
            "-- base_copy just pulls from base. Make sure the listed-- graph of CTEs all share the same dbt_cte__base"
            " cte select * from __dbt__cte__base where gender = 'Male' union all"
            " select * from __dbt__cte__base_copy where gender = 'Female'"
        )


class TestEphemeralNested(ephemeral.BaseEphemeralNested):
    def test_ephemeral_nested(self, project: Any) -> None:
        assert len(run_dbt(["run"])) == 2
        said = Path("target/run/test/models/root_view.sql").read_text()
        assert squeezed(said) == squeezed(
            f"create or replace view {project.test_schema}.root_view as with __dbt__cte__ephemeral_level_two as "
            f"(select * from {project.test_schema}.source_table), __dbt__cte__ephemeral as "
            "(select * from __dbt__cte__ephemeral_level_two)select * from __dbt__cte__ephemeral"
        )


class TestUnitTestQuotedReservedWord(reserved.BaseUnitTestQuotedReservedWordColumnNames):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model.sql": reserved.my_model_sql,
            "my_upstream_model.sql": "select 1 as `GROUP`",
            "unit_tests.yml": reserved.test_my_model_csv_fixtures_yml,
        }


class TestIncrementalPredicates(predicates.BaseIncrementalPredicates):
    """As dbt-spark does it: by merge."""

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        given = {"+incremental_predicates": ["DBT_INTERNAL_DEST.id != 2"], "+incremental_strategy": "merge"}
        return {"models": given}


class TestMicrobatch(microbatch.BaseMicrobatch):
    @pytest.fixture(scope="class")
    def microbatch_model_sql(self) -> str:
        return (
            "{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='event_time',"
            " batch_size='day', begin=modules.datetime.datetime(2020, 1, 1, 0, 0, 0), partition_by=['date_day']) }}"
            " select *, cast(event_time as date) as date_day from {{ ref('input_model') }}"
        )

    @pytest.fixture(scope="class")
    def insert_two_rows_sql(self, project: Any) -> str:
        return (
            f"insert into {project.test_schema}.input_model (id, event_time) values "
            "(4, TIMESTAMP '2020-01-04 00:00:00-0'), (5, TIMESTAMP '2020-01-05 00:00:00-0')"
        )


class TestPySpark(python_models.BasePySparkTests):
    """Koalas does not exist for Spark 4; the other three kinds of frames do."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "pandas_df.py": python_models.PANDAS_MODEL,
            "pyspark_df.py": python_models.PYSPARK_MODEL,
            "pandas_on_spark_df.py": python_models.PANDAS_ON_SPARK_MODEL,
        }

    def test_different_dataframes(self, project: Any) -> None:
        assert len(run_dbt(["run"])) == 3


class TestEmptyModelsArentRun(simple_copy.EmptyModelsArentRunBase):
    def test_dbt_doesnt_run_empty_models(self, project: Any) -> None:
        assert len(run_dbt(["seed"])) == 1
        assert len(run_dbt()) == 7
        shown = {row[1] for row in project.run_sql("show tables in {schema}", fetch="all")}
        assert "view_model" in shown and not {"empty", "disabled"} & shown


class TestSimpleCopyUppercase(uppercase.BaseSimpleCopyUppercase):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self) -> dict[str, Any]:
        from tests.functional.conftest import profile_target

        return profile_target()


class ColumnWithoutDefault:
    """A Hudi table keeps no DEFAULT: the column is added, then filled by an UPDATE."""

    @pytest.fixture(scope="class")
    def source_alter_sql(self) -> str:
        return (
            "alter table {database}.{schema}.src_customers add column dummy_column VARCHAR(50);"
            " update {database}.{schema}.src_customers set dummy_column = 'dummy_value';"
        )


class TestSnapshotEphemeralHardDeletes(ColumnWithoutDefault, snapshots.BaseSnapshotEphemeralHardDeletes):
    pass


class TestSnapshotNewColumnTimestamp(ColumnWithoutDefault, snapshots.BaseSnapshotNewColumnTimestampStrategy):
    pass


class TestSnapshotNewColumnCheckCols(ColumnWithoutDefault, snapshots.BaseSnapshotNewColumnSpecificCheckCols):
    pass


class TestSnapshotNewColumnWithDeletes(ColumnWithoutDefault, snapshots.BaseSnapshotNewColumnWithDeletes):
    pass


# --- utils ----------------------------------------------------------------------------------------------------------


class TestGetIntervalsBetween(intervals.BaseGetIntervalsBetween):
    """Dates in ISO form, as dbt-databricks."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "t.yml": intervals_files.models__test_get_intervals_between_yml,
            "test_get_intervals_between.sql": (
                """select {{ get_intervals_between("'2023-09-01'", "'2023-09-12'", "day") }} as intervals, 11 as expected"""
            ),
        }


class TestCurrentTimestamps(timestamps.BaseCurrentTimestamps):
    """As dbt-spark."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"get_current_timestamp.sql": "select {{ current_timestamp() }} as current_timestamp"}

    @pytest.fixture(scope="class")
    def expected_schema(self) -> dict[str, str]:
        return {"current_timestamp": "timestamp"}

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return "select current_timestamp() as current_timestamp"

"""dbt's cases of contracts and column types, with the types and the words of Spark."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.column_types import test_column_types as column_types
from dbt.tests.adapter.constraints import fixtures as constraint_files
from dbt.tests.adapter.constraints import test_constraints as constraints

COLUMNS = """
select 1Y as tinyint_col, 1S as smallint_col, 2 as int_col, 3L as bigint_col, cast(4.0 as float) as real_col,
    cast(5.0 as double) as double_col, cast(6.0 as decimal(9,2)) as numeric_col, '7' as text_col,
    cast('8' as varchar(20)) as varchar_col
"""
COLUMNS_YML = """
version: 2
models:
  - name: model
    data_tests:
      - is_type:
          column_map:
            tinyint_col: ['integer', 'number']
            smallint_col: ['integer', 'number']
            int_col: ['integer', 'number']
            bigint_col: ['integer', 'number']
            real_col: ['float', 'number']
            double_col: ['float', 'number']
            numeric_col: ['numeric', 'number']
            text_col: ['string', 'not number']
            varchar_col: ['string', 'not number']
"""


class TestColumnTypesOfAView(column_types.BasePostgresColumnTypes):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"model.sql": COLUMNS, "schema.yml": COLUMNS_YML}


class TestColumnTypesOfATable(column_types.BasePostgresColumnTypes):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "model.sql": "{{ config(materialized='table') }}" + COLUMNS,
            "schema.yml": COLUMNS_YML,
        }


class ContractQuery:
    """Tables are written by the engine: target/run holds the contract's query."""

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return """
select id, color, date_day from (
    -- depends_on: <foreign_key_model_identifier>
    select 'blue' as color, 1 as id, '2019-01-01' as date_day
) as model_subq
"""


class TestConstraintsRuntimeDdl(ContractQuery, constraints.BaseConstraintsRuntimeDdlEnforcement):
    pass


class TestIncrementalConstraintsRuntimeDdl(
    ContractQuery, constraints.BaseIncrementalConstraintsRuntimeDdlEnforcement
):
    pass


class TestModelConstraintsRuntime(ContractQuery, constraints.BaseModelConstraintsRuntimeEnforcement):
    pass


class TestConstraintQuotedColumn(constraints.BaseConstraintQuotedColumn):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        yml = constraint_files.model_quoted_column_schema_yml
        yml = yml.replace('("from" =', "(`from` =").replace("'\"from\"'", "'`from`'")
        return {
            "my_model.sql": constraint_files.my_model_with_quoted_column_name_sql,
            "constraints_schema.yml": yml,
        }

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return (
            "select id, `from`, date_day from ( select 'blue' as `from`, 1 as id, '2019-01-01' as date_day )"
            " as model_subq"
        )


class ConstraintMessages:
    @pytest.fixture(scope="class")
    def expected_error_messages(self) -> list[str]:
        return ["constraint violated", "not null id"]


class TestConstraintsRollback(ConstraintMessages, constraints.BaseConstraintsRollback):
    pass


class TestIncrementalConstraintsRollback(ConstraintMessages, constraints.BaseIncrementalConstraintsRollback):
    pass


class SparksZone:
    """A header that Spark understands, and that it took effect."""

    @staticmethod
    def header(sql: str) -> str:
        sql = sql.replace("set session time zone 'Asia/Kolkata';", "set time zone 'Asia/Kolkata';")
        return sql.replace("current_setting('timezone')", "current_timezone()")

    def test__contract_sql_header(self, project: Any) -> None:
        super().test__contract_sql_header(project)  # type: ignore[misc]
        query = "select column_name from {schema}.my_model_contract_sql_header"
        assert project.run_sql(query, fetch="one")[0] == "Asia/Kolkata"


class TestTableContractSqlHeader(SparksZone, constraints.BaseTableContractSqlHeader):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model_contract_sql_header.sql": self.header(
                constraint_files.my_model_contract_sql_header_sql
            ),
            "constraints_schema.yml": constraint_files.model_contract_header_schema_yml,
        }


class TestIncrementalContractSqlHeader(SparksZone, constraints.BaseIncrementalContractSqlHeader):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model_contract_sql_header.sql": self.header(
                constraint_files.my_model_incremental_contract_sql_header_sql
            ),
            "constraints_schema.yml": constraint_files.model_contract_header_schema_yml,
        }

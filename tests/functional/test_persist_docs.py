"""Descriptions in the catalog."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.persist_docs.test_persist_docs import (
    BasePersistDocsAllColumnsMissing,
    BasePersistDocsColumnMissing,
    BasePersistDocsQuotedColumnCaseSensitive,
    BasePersistDocsQuotedDescriptionNotAppliedOnMismatch,
)
from dbt.tests.util import run_dbt, run_dbt_and_capture

MODEL = "{{ config(materialized='table', persist_docs={'columns': true}) }} select 1 as id, 'a' as name, 'x' as place"
COLUMNS = """
models:
  - name: described
    columns: [{name: ID, description: the key}, {name: name, description: who}, {name: gone, description: what was}]
"""
MACROS = """
{% macro validate_doc_columns(relation, column_dict, existing_column_names) %}
  {% do exceptions.raise_compiler_error('releases of dbt before 1.22.10 of dbt-adapters have no such macro') %}
{% endmacro %}

{% macro describe(column, description) %}
  {% set table = api.Relation.create(schema=target.schema, identifier='described', type='table') %}
  {% do alter_column_comment(table, {column: {'description': description}}) %}
{% endmacro %}
"""


@pytest.fixture(scope="class")
def writes_artifacts() -> bool:
    return True


class TestPersistDocsColumnMissing(BasePersistDocsColumnMissing):
    pass


@pytest.mark.long
class TestPersistDocsAllColumnsMissing(BasePersistDocsAllColumnsMissing):
    pass


class TestPersistDocsQuotedColumnCaseSensitive(BasePersistDocsQuotedColumnCaseSensitive):
    pass


@pytest.mark.long
class TestPersistDocsQuotedDescriptionNotAppliedOnMismatch(
    BasePersistDocsQuotedDescriptionNotAppliedOnMismatch
):
    pass


class TestCommentsOfColumns:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"described.sql": MODEL, "schema.yml": COLUMNS}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"described_columns.sql": MACROS}

    def comments(self, project: Any) -> dict[str, str | None]:
        rows = project.run_sql("describe table {schema}.described", fetch="all")
        return {row[0]: row[2] for row in rows}

    def test_descriptions_need_no_macro_that_older_releases_of_dbt_lack(self, project: Any) -> None:
        _, told = run_dbt_and_capture(["run"])

        assert "specified in the schema but are not present in the database: gone" in told
        assert self.comments(project) == {"id": "the key", "name": "who", "place": None}

    def test_the_comment_of_one_column_leaves_those_of_the_others(self, project: Any) -> None:
        run_dbt(["run"])
        describe = ["run-operation", "describe", "--args"]

        run_dbt([*describe, "{column: place, description: where}"])
        assert self.comments(project) == {"id": "the key", "name": "who", "place": "where"}
        run_dbt([*describe, "{column: NAME, description: ''}"])
        assert self.comments(project) == {"id": "the key", "name": None, "place": "where"}


MARKED = """
{{ config(materialized='incremental', unique_key='id', on_schema_change='fail', persist_docs={'columns': true}) }}
select 1 as id, false as _hoodie_is_deleted, false as __hudi_is_deleted
"""
MARKS = """
models:
  - name: marked
    config: {contract: {enforced: true}}
    columns:
      - {name: id, data_type: int}
      - {name: _hoodie_is_deleted, data_type: boolean, description: whether it goes}
      - {name: __hudi_is_deleted, data_type: boolean, description: of one batch}
"""


class TestCommentsOfMarks:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"marked.sql": MARKED, "schema.yml": MARKS}

    def test_the_mark_of_deleted_rows_is_a_column_that_can_be_described(self, project: Any) -> None:
        for _ in range(2):
            run_dbt(["--warn-error", "run"])
        rows = project.run_sql("describe table {schema}.marked", fetch="all")
        assert {row[0]: row[2] for row in rows} == {"id": None, "_hoodie_is_deleted": "whether it goes"}
        catalog = run_dbt(["docs", "generate"])
        columns = catalog.nodes["model.test.marked"].columns
        assert {name: column.comment for name, column in columns.items()} == {
            "id": None,
            "_hoodie_is_deleted": "whether it goes",
        }


PLACED = """
{{ config(materialized='table', partition_by=['place', 'day'], table_type=TYPE, persist_docs={'columns': true}) }}
select 1 as id, 'x' as place, date '2026-01-01' as day
"""
PLACES = """
models:
  - name: placed
    columns: &columns
      [{name: ID, description: the key}, {name: PLACE, description: where}, {name: day, description: when}]
  - {name: placed_logs, columns: *columns}
"""


class TestCommentsOfPartitionColumns:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "placed.sql": PLACED.replace("TYPE", "'copy_on_write'"),
            "placed_logs.sql": PLACED.replace("TYPE", "'merge_on_read'"),
            "schema.yml": PLACES,
        }

    def test_the_catalog_of_dbt_has_what_is_said_of_partition_columns(self, project: Any) -> None:
        run_dbt(["run"])
        catalog = run_dbt(["docs", "generate"])
        for name in ("placed", "placed_logs"):
            described = project.run_sql(f"describe table {{schema}}.{name}", fetch="all")
            columns = catalog.nodes[f"model.test.{name}"].columns
            found = {each: column.comment for each, column in columns.items()}
            assert found == {"id": "the key", "place": "where", "day": "when"}
            assert found.items() <= {row[0]: row[2] for row in described}.items()

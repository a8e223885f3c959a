"""``dbt docs generate``, descriptions and metadata freshness."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dbt.tests.adapter.catalog import files
from dbt.tests.adapter.catalog.relation_types import CatalogRelationTypes
from dbt.tests.adapter.persist_docs.test_persist_docs import BasePersistDocs
from dbt.tests.util import run_dbt


@pytest.fixture(scope="class")
def writes_artifacts() -> bool:
    return True


class TestCatalogRelationTypes(CatalogRelationTypes):
    @pytest.fixture(scope="class", autouse=True)
    def models(self) -> dict[str, str]:
        return {"my_table.sql": files.MY_TABLE, "my_view.sql": files.MY_VIEW}

    @pytest.mark.parametrize(
        ("node_name", "relation_type"),
        [("seed.test.my_seed", "table"), ("model.test.my_table", "table"), ("model.test.my_view", "view")],
    )
    def test_relation_types_populate_correctly(self, docs: Any, node_name: str, relation_type: str) -> None:
        super().test_relation_types_populate_correctly(docs, node_name, relation_type)


class TestPersistDocs(BasePersistDocs):
    pass


PROPERTIES = """
models:
  - name: orders
    description: "{{ var('what', 'What we sold') }}"
    config: {persist_docs: {relation: true, columns: true}}
    columns: [{name: id, description: "it's the key"}]
sources:
  - name: own
    schema: "{{ target.schema }}"
    freshness: {error_after: {count: 1, period: hour}}
    tables: [{name: orders}]
"""


class TestCatalogOfATable:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        sql = "select 1 as id, 'a' as name, 'x' as dt"
        config = "materialized='incremental', unique_key='id', partition_by='dt'"
        logs = "{{ config(materialized='incremental', unique_key='id', table_type='mor') }} "
        return {
            "orders.sql": f"{{{{ config({config}) }}}} {sql}",
            "with_logs.sql": f"{logs} select id, {{{{ is_incremental() }}}} as again from range(4)",
            "schema.yml": PROPERTIES,
        }

    def node(self, name: str = "orders") -> dict[str, Any]:
        run_dbt(["docs", "generate"])
        with open("target/catalog.json") as file:
            return dict(json.load(file)["nodes"][f"model.test.{name}"])

    def test_rows_bytes_file_groups_and_the_last_instant_are_on_the_page_of_a_table(
        self, project: Any
    ) -> None:
        run_dbt(["run"])
        newest = project.run_sql("call show_commits(table => '{schema}.orders', limit => 1)", fetch="one")[0]
        stats = self.node()["stats"]
        assert stats["num_rows"] == {
            "id": "num_rows", "label": "Rows", "value": 1, "include": True, "description": "Rows of the table",
        }  # fmt: skip
        assert (stats["file_groups"]["value"], stats["last_instant"]["value"]) == (1, newest)
        assert "base_rows" not in stats

    def test_rows_that_only_a_merge_of_logs_would_tell_are_not_guessed(self, project: Any) -> None:
        run_dbt(["run", "--full-refresh"])
        assert self.node("with_logs")["stats"]["num_rows"]["value"] == 4
        run_dbt(["run"])
        stats = self.node("with_logs")["stats"]
        assert "num_rows" not in stats and stats["base_rows"]["value"] == 4
        assert stats["files"]["value"] == 2

    def test_columns_comments_and_statistics_come_from_the_table(self, project: Any) -> None:
        run_dbt(["run"])
        node = self.node()
        assert node["metadata"]["comment"] == "What we sold"
        assert {name: column["type"] for name, column in node["columns"].items()} == {
            "id": "int", "name": "string", "dt": "string",
        }  # fmt: skip
        assert node["columns"]["id"]["comment"] == "it's the key"
        values = {name: stat["value"] for name, stat in node["stats"].items()}
        assert values["table_type"] == "copy on write"
        assert (values["record_key"], values["partition_by"], values["files"]) == ("id", "dt", 1)
        assert values["bytes"] > 0

    def test_an_empty_comment_is_none(self, project: Any) -> None:
        project.run_sql("create or replace view {schema}.bare (id comment '') comment '' as select 1 as id")
        bare = project.adapter.Relation.create(schema=project.test_schema, identifier="bare", type="view")
        with project.adapter.connection_named("look"):
            found = project.adapter.get_catalog_for_single_relation(bare)
        assert (found.metadata.comment, found.columns["id"].comment) == (None, None)

    def test_a_changed_description_reaches_the_table_that_exists(self, project: Any) -> None:
        run_dbt(["run"])
        run_dbt(["run", "--vars", "{what: What we shipped}"])
        assert self.node()["metadata"]["comment"] == "What we shipped"
        run_dbt(["run", "--vars", "{what: ''}"])
        assert not self.node()["metadata"]["comment"]

    def test_freshness_is_the_newest_commit(self, project: Any) -> None:
        run_dbt(["run"])
        (result,) = run_dbt(["source", "freshness"])
        assert result.status == "pass"
        assert 0 <= result.age < 600

"""MERGE beside another writer that changes the columns, and in tables with columns that no statement sees."""

from __future__ import annotations

from typing import Any

import pytest
from hudi_engine import HudiTable

from tests.helpers.hudi_rs import rows_by_hudi_rs

BOTH = "when matched then update set * when not matched then insert *"


class TestColumnsOfMerges:
    """A merge is about the columns that the table has as it is written."""

    @pytest.mark.core
    @pytest.mark.parametrize("kind", ["cow", "mor"])
    def test_a_column_that_another_writer_adds_as_it_begins_keeps_its_values(
        self, project: Any, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        name = f"grown_{kind}"
        project.run_sql(
            f"create table {{schema}}.{name} (id int, v string) using hudi options (primaryKey 'id', type '{kind}')"
        )
        project.run_sql(f"insert into {{schema}}.{name} values (1, 'x')")
        begin = HudiTable.merge_rows

        def once_another_added(table: HudiTable, *args: Any, **more: Any) -> Any:
            monkeypatch.undo()
            other = HudiTable.open(table.spark, table.path)
            other.upsert(table.spark.createDataFrame([(1, "x", 7)], "id int, v string, theirs int"))
            return begin(table, *args, **more)

        monkeypatch.setattr(HudiTable, "merge_rows", once_another_added)
        project.run_sql(
            f"merge into {{schema}}.{name} t using (select 1 id, 'y' v union all select 2, 'y') s on t.id = s.id "
            "when matched then update set v = s.v when not matched then insert (id, v) values (s.id, s.v)"
        )
        found = project.run_sql(f"select id, v, theirs from {{schema}}.{name} order by id", fetch="all")
        assert [*map(tuple, found)] == [(1, "y", 7), (2, "y", None)]

    def test_the_column_of_operations_that_a_table_keeps_is_none_that_a_merge_takes(
        self, project: Any
    ) -> None:
        project.run_sql(
            "create table {schema}.kept (id int, v string) using hudi options (primaryKey 'id', type 'mor', "
            "'hoodie.allow.operation.metadata.field' 'true')"
        )
        project.run_sql("insert into {schema}.kept values (1, 'x')")
        project.run_sql(
            f"merge into {{schema}}.kept t using (select 1 id, 'y' v union all select 2, 'y') s on t.id = s.id {BOTH}"
        )
        path = str(project.project_root / "warehouse" / project.test_schema / "kept")
        assert rows_by_hudi_rs(path, ["id", "v"]) == [(1, "y"), (2, "y")]

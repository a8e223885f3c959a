"""Words of SQL in statements on Hudi tables: DEFAULT as a value, and the table's name before its columns."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.sampled


class TestWords:
    @pytest.fixture(autouse=True)
    def _tables(self, project: Any) -> None:
        project.run_sql("drop table if exists {schema}.a; drop table if exists {schema}.b")
        for name in ("a", "b"):
            project.run_sql(
                f"create table {{schema}}.{name} (id int, n int, v string) using hudi options (primaryKey 'id')"
            )
        project.run_sql("insert into {schema}.a values (1, 1, 'default'), (2, 2, 'y')")
        project.run_sql("insert into {schema}.b values (2, 20, 'why'), (3, 30, 'z')")

    def rows(self, project: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in project.run_sql("select * from {schema}.a order by id", fetch="all")]

    @pytest.mark.parametrize(
        "statement",
        [
            "insert into {schema}.a values (3, default, 'x')",
            "update {schema}.a set n = default where id = 2",
            "merge into {schema}.a t using {schema}.b s on t.id = s.id when matched then update set v = default",
        ],
    )
    def test_default_is_refused_as_a_value(self, project: Any, statement: str) -> None:
        with pytest.raises(Exception, match="(?i)write NULL"):
            project.run_sql(statement)
        assert self.rows(project) == [(1, 1, "default"), (2, 2, "y")]

    @pytest.mark.parametrize("of_schema", ["{schema}.", "spark_catalog.{schema}.", ""])
    def test_a_merge_takes_the_tables_name_in_front_of_its_columns(
        self, project: Any, of_schema: str
    ) -> None:
        a, b = f"{of_schema}a", f"{of_schema}b"
        project.run_sql(
            f"merge into {{schema}}.a using {{schema}}.b on {a}.id = {b}.id when matched and {a}.n < {b}.n then update set "
            f"{a}.n = {a}.n + {b}.n when not matched then insert (id, n) values ({b}.id, {b}.n) "
            f"when not matched by source and {a}.id = 1 then update set v = concat({a}.v, '!')"
        )
        assert self.rows(project) == [(1, 1, "default!"), (2, 22, "y"), (3, 30, None)]

    @pytest.mark.parametrize("name", ["a", "{schema}.a"])
    def test_replace_where_takes_the_tables_name_in_front_of_its_columns(
        self, project: Any, name: str
    ) -> None:
        project.run_sql(f"insert into {{schema}}.a replace where {name}.id > 1 select 5, 5, 'five'")
        assert self.rows(project) == [(1, 1, "default"), (5, 5, "five")]
        with pytest.raises(Exception, match="a.id > 1"):
            project.run_sql(f"insert into {{schema}}.a replace where {name}.id > 1 select 0, 0, 'zero'")
        assert self.rows(project) == [(1, 1, "default"), (5, 5, "five")]

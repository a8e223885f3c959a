"""Structs in INSERT, UPDATE and MERGE: fields go by their names."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.sampled

SWAPPED = "named_struct('b', 'new', 'a', 7)"
WRONG = {
    "unknown": ("named_struct('a', 7, 'c', 'x', 'b', 'y')", "has no field 'c'; its fields: a, b"),
    "missing": ("named_struct('a', 7)", "lacks the field 'b', which the table has"),
    "by position": ("struct(7 + 0, 'x' || 'y')", "has no field 'col1'"),
}
STATEMENTS = {
    "update": "update {{schema}}.structs set s = {}, many = array({})",
    "merge": "merge into {{schema}}.structs t using (select 1 as id) x on t.id = x.id when matched then update set s = {}, many = array({})",
    "insert": "insert into {{schema}}.structs select 2, {}, array({}), null",
}


class TestStructs:
    @pytest.fixture(autouse=True)
    def structs(self, project: Any) -> None:
        project.run_sql("drop table if exists {schema}.structs")
        project.run_sql(
            "create table {schema}.structs (id int, s struct<a: int, b: string>, many array<struct<a: int, b: string>>, "
            "named map<string, struct<a: int, b: string>>) using hudi options (primaryKey 'id')"
        )
        project.run_sql(
            "insert into {schema}.structs select 1, named_struct('a', 1, 'b', 'x'), array(named_struct('a', 1, 'b', 'x')), "
            "map('k', named_struct('a', 1, 'b', 'x'))"
        )

    def rows(self, project: Any) -> list[Any]:
        found = project.run_sql(
            "select id, s.a, s.b, get(many, 0).a, get(many, 0).b, named['k'].b from {schema}.structs order by id",
            fetch="all",
        )
        return [tuple(row) for row in found]

    @pytest.mark.parametrize("kind", STATEMENTS)
    def test_fields_in_another_order_keep_their_names(self, project: Any, kind: str) -> None:
        project.run_sql(STATEMENTS[kind].format(SWAPPED, SWAPPED))
        assert self.rows(project)[-1][1:5] == (7, "new", 7, "new")

    @pytest.mark.parametrize("kind", STATEMENTS)
    @pytest.mark.parametrize("wrong", WRONG)
    def test_other_fields_than_the_tables_are_refused(self, project: Any, kind: str, wrong: str) -> None:
        value, reason = WRONG[wrong]
        for pair in ((value, SWAPPED), (SWAPPED, value)):
            with pytest.raises(Exception, match=f"(s|many.element) {reason}"):
                project.run_sql(STATEMENTS[kind].format(*pair))
        assert self.rows(project) == [(1, 1, "x", 1, "x", "x")]

    def test_values_of_a_map_go_by_name_and_null_is_null(self, project: Any) -> None:
        project.run_sql(
            f"update {{schema}}.structs set named = map('k', {SWAPPED}), s = null, many = array()"
        )
        assert self.rows(project) == [(1, None, None, None, None, "new")]

    @pytest.mark.parametrize(
        "change",
        [
            "drop column s.a",
            "drop column if exists S.a",
            "drop columns if exists (id, many.element.a)",
            "drop column named.value.b",
            "alter column s.a type bigint",
            "alter column s.a comment 'x'",
            "drop column s.nothere",
            "drop column if exists id.a",
        ],
    )
    def test_fields_are_not_dropped_or_altered(self, project: Any, change: str) -> None:
        with pytest.raises(
            Exception, match=r"is a field inside of column (?i:s|many|named|id): a field cannot be dropped"
        ):
            project.run_sql(f"alter table {{schema}}.structs {change}")
        assert self.rows(project) == [(1, 1, "x", 1, "x", "x")]

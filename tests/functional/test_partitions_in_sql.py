"""INSERT with PARTITION: which partitions go, and null as a value."""

from __future__ import annotations

from typing import Any

import pytest

DYNAMIC = "set spark.sql.sources.partitionOverwriteMode=dynamic;"


class TestPartitions:
    @pytest.fixture(autouse=True)
    def _tables(self, project: Any) -> None:
        project.run_sql("drop table if exists {schema}.two; drop table if exists {schema}.one")
        project.run_sql(
            "create table {schema}.two (id int, a string, b string) using hudi partitioned by (a, b)"
        )
        project.run_sql("insert into {schema}.two values (1, 'x', 'p'), (2, 'x', 'q'), (3, 'y', 'p')")
        project.run_sql(
            "create table {schema}.one (id int, name string, dt string) using hudi partitioned by (dt)"
        )
        project.run_sql("insert into {schema}.one values (1, 'a', 'x'), (2, 'b', null)")

    def rows(self, project: Any, name: str) -> list[tuple[Any, ...]]:
        return [
            tuple(row) for row in project.run_sql(f"select * from {{schema}}.{name} order by id", fetch="all")
        ]

    def test_a_dynamic_overwrite_leaves_partitions_that_get_no_row(self, project: Any) -> None:
        project.run_sql(
            f"{DYNAMIC} insert overwrite {{schema}}.two partition (a = 'x', b) select 9, 'p' where false"
        )
        assert [row[0] for row in self.rows(project, "two")] == [1, 2, 3]
        project.run_sql(f"{DYNAMIC} insert overwrite {{schema}}.two partition (a = 'x', b) select 9, 'p'")
        assert self.rows(project, "two") == [(2, "x", "q"), (3, "y", "p"), (9, "x", "p")]

    def test_a_partition_that_is_named_whole_is_emptied_by_a_query_without_rows(self, project: Any) -> None:
        project.run_sql(
            f"{DYNAMIC} insert overwrite {{schema}}.two partition (a = 'x', b = 'p') select 9 where false"
        )
        assert [row[0] for row in self.rows(project, "two")] == [2, 3]

    def test_a_partition_that_is_named_is_not_given_by_the_query_too(self, project: Any) -> None:
        for kind in ("into", "overwrite"):
            with pytest.raises(Exception, match="names dt more than once"):
                project.run_sql(
                    f"insert {kind} {{schema}}.one partition (dt = 'x') by name select 7 as id, 'y' as DT"
                )
        project.run_sql("insert into {schema}.one partition (dt = 'x') by name select 'n' as name, 7 as id")
        assert self.rows(project, "one") == [(1, "a", "x"), (2, "b", None), (7, "n", "x")]

    def test_null_is_a_partition_like_another(self, project: Any) -> None:
        project.run_sql("insert into {schema}.one partition (dt = null) select 7, 'n'")
        assert self.rows(project, "one") == [(1, "a", "x"), (2, "b", None), (7, "n", None)]
        project.run_sql("insert overwrite {schema}.one partition (dt = null) select 8, 'o'")
        assert self.rows(project, "one") == [(1, "a", "x"), (8, "o", None)]
        project.run_sql("insert overwrite {schema}.one partition (dt = null) select 8, 'o' where false")
        assert self.rows(project, "one") == [(1, "a", "x")]

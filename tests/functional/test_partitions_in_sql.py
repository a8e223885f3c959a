"""INSERT with PARTITION: which partitions go, and null as a value."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from hudi_engine import HudiTable
from hudi_engine.spark.sql import dml
from pyspark.sql import SparkSession
from pyspark.sql import types as T

pytestmark = pytest.mark.sampled

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

    def test_null_and_a_text_without_letters_are_one_partition_which_is_emptied_whole(
        self, project: Any
    ) -> None:
        for value in ("null", "''"):
            project.run_sql("insert into {schema}.one values (7, 'n', null), (8, 'o', '')")
            project.run_sql(
                f"insert overwrite {{schema}}.one partition (dt = {value}) select 9, 'p' where false"
            )
            assert self.rows(project, "one") == [(1, "a", "x")]

    def test_a_partition_is_emptied_by_one_instant(self, project: Any) -> None:
        def instants() -> int:
            return len(project.run_sql("call show_commits(table => '{schema}.one')", fetch="all"))

        before = instants()
        project.run_sql("insert overwrite {schema}.one partition (DT = 'x') select 8, 'o' where false")
        assert (instants() - before, self.rows(project, "one")) == (1, [(2, "b", None)])

    def test_a_value_that_does_not_fit_is_refused(self, project: Any) -> None:
        project.run_sql(
            "create or replace table {schema}.numbered (id int, n int) using hudi partitioned by (n)"
        )
        with pytest.raises(Exception, match="value x of column n does not fit its type int"):
            project.run_sql("insert overwrite {schema}.numbered partition (n = 'x') select 8")

    @pytest.mark.parametrize(("kind", "value"), [("string", "'x'"), ("int", "5")])
    def test_a_column_that_another_writer_adds_meanwhile_is_null_in_its_rows(
        self, project: Any, kind: str, value: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project.run_sql(
            f"create or replace table {{schema}}.wider (id int, p {kind}) using hudi partitioned by (p)"
        )
        project.run_sql(f"insert into {{schema}}.wider values (1, {value}), (2, null)")
        base = project.project_root / "warehouse" / project.test_schema / "wider"
        path_of = dml.path_of

        def overtaken(*arguments: Any) -> str:
            other = HudiTable.open(SparkSession.builder.getOrCreate(), str(base))
            other.alter_schema(T.StructType([*other.schema.fields, T.StructField("more", T.StringType())]))
            return path_of(*arguments)

        monkeypatch.setattr(dml, "path_of", overtaken)
        project.run_sql(f"insert overwrite {{schema}}.wider partition (p = {value}) select 9")
        given = value.strip("'") if kind == "string" else int(value)
        assert self.rows(project, "wider") == [(2, None, None), (9, given, None)]


@pytest.mark.parametrize("hive_style", ["true", "false"])
class TestPartitionsThatGoAndAreShown:
    @pytest.fixture(autouse=True)
    def _table(self, project: Any, hive_style: str) -> None:
        style = f"'hoodie.datasource.write.hive_style_partitioning' '{hive_style}'"
        project.run_sql(
            "create or replace table {schema}.sales (id int, d date, n int, s string) using hudi "
            f"options (primaryKey 'id', {style}) partitioned by (d, n, s)"
        )
        project.run_sql(
            "insert into {schema}.sales values (1, date'2024-01-01', 1, 'a b:c'), (2, date'2024-01-01', 2, null), "
            "(3, date'2024-01-02', 1, 'x'), (4, date'2024-01-03', 10, 'x')"
        )

    def ids(self, project: Any) -> list[int]:
        return [row[0] for row in project.run_sql("select id from {schema}.sales order by id", fetch="all")]

    def shown(self, project: Any, rest: str = "") -> list[str]:
        return [row[0] for row in project.run_sql(f"show partitions {{schema}}.sales{rest}", fetch="all")]

    def test_they_are_shown_as_spark_writes_them(self, project: Any) -> None:
        some = ["d=2024-01-01/n=1/s=a b%3Ac", "d=2024-01-01/n=2/s=__HIVE_DEFAULT_PARTITION__"]
        assert self.shown(project) == [*some, "d=2024-01-02/n=1/s=x", "d=2024-01-03/n=10/s=x"]
        assert self.shown(project, " partition (D = '2024-01-01')") == some
        assert self.shown(project, " partition (s = 'x', n = 1, d = '2024-01-02')") == [
            "d=2024-01-02/n=1/s=x"
        ]
        assert self.shown(project, " partition (n = 7)") == []

    @pytest.mark.parametrize("said", ["", "/* no partition */ "])
    def test_the_table_is_described_without_one(self, project: Any, said: str) -> None:
        told = [row[0] for row in project.run_sql(f"describe {said}{{schema}}.sales", fetch="all")]
        assert {"id", "d", "n", "s"} <= set(told)

    def test_they_go_by_all_of_their_columns_or_by_some(self, project: Any) -> None:
        project.run_sql("alter table {schema}.sales drop partition (d = date'2024-01-02', n = 1, s = 'x')")
        assert self.ids(project) == [1, 2, 4]
        project.run_sql("alter table {schema}.sales drop partition (n = 1), partition (s = null)")
        assert self.ids(project) == [4]
        project.run_sql("truncate table {schema}.sales partition (n = '10')")
        assert self.ids(project) == []

    @pytest.mark.parametrize("ansi", ["true", "false"])
    @pytest.mark.parametrize(
        "named", ["n = 'abc'", "n = '1.9'", "n = 99999999999", "d = '2024'", "d = '2024-01-01x'"]
    )
    def test_a_value_that_is_none_of_the_column_names_no_other_partition(
        self, project: Any, named: str, ansi: str
    ) -> None:
        project.run_sql("insert into {schema}.sales values (5, null, null, 'x')")
        with pytest.raises(Exception, match="is no value of column"):
            project.run_sql(
                f"set spark.sql.ansi.enabled = {ansi}; alter table {{schema}}.sales drop if exists partition ({named})"
            )
        assert self.ids(project) == [1, 2, 3, 4, 5]

    def test_a_text_without_letters_names_the_partition_of_null(self, project: Any) -> None:
        project.run_sql("alter table {schema}.sales drop partition (s = '')")
        assert self.ids(project) == [1, 3, 4]

    def test_one_that_holds_no_rows_is_told_unless_it_may_be_missing(self, project: Any) -> None:
        with pytest.raises(Exception, match="d=2024-01-09.* hold no rows"):
            project.run_sql("alter table {schema}.sales drop partition (n = 1), partition (d = '2024-01-09')")
        with pytest.raises(Exception, match="hold no rows"):
            project.run_sql("truncate table {schema}.sales partition (d = '2024-01-02', n = 1, s = 'y')")
        project.run_sql("alter table {schema}.sales drop if exists partition (d = '2024-01-09')")
        assert self.ids(project) == [1, 2, 3, 4]
        project.run_sql("alter table {schema}.sales drop if exists partition (n = 1), partition (n = 7)")
        assert self.ids(project) == [2, 4]

    @pytest.mark.parametrize(
        ("statement", "told"),
        [
            ("alter table {schema}.sales drop partition (id = 1)", "its partition columns: d, n, s"),
            ("alter table {schema}.sales drop partition (n = 1) purge", "leave PURGE out"),
            ("show partitions {schema}.whole", "is not partitioned"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, project: Any, statement: str, told: str) -> None:
        project.run_sql("create or replace table {schema}.whole (id int) using hudi")
        with pytest.raises(Exception, match=told):
            project.run_sql(statement)


class TestPartitionsOfTimes:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        config = (
            "materialized='table', partition_by=['at:timestamp'], options={"
            "'hoodie.datasource.write.keygenerator.type': 'CUSTOM', 'hoodie.keygen.timebased.timestamp.type': 'EPOCHMICROSECONDS', "
            "'hoodie.keygen.timebased.output.dateformat': 'yyyy-MM-dd'}"
        )
        rows = "select id, timestamp(at) as at from values (1, '2024-01-01 10:00:00'), (2, '2024-01-02 10:00:00') as t(id, at)"
        return {"days.sql": f"{{{{ config({config}) }}}} {rows}"}

    @pytest.mark.parametrize(("rows", "left"), [("", [2, 3]), (" where false", [2])])
    def test_a_time_names_its_day_whether_rows_come_or_none(
        self, project: Any, rows: str, left: list[int]
    ) -> None:
        run_dbt(["run", "--full-refresh"])
        project.run_sql(
            f"insert overwrite {{schema}}.days partition (at = '2024-01-01 00:00:00') select 3{rows}"
        )
        found = project.run_sql("select id from {schema}.days order by id", fetch="all")
        assert [row[0] for row in found] == left

    def test_a_time_among_other_columns_is_named_with_all_of_them(self, project: Any) -> None:
        project.run_sql("drop table if exists {schema}.pairs")
        project.run_sql(
            "create table {schema}.pairs (id int, c string, at timestamp) using hudi partitioned by (c, at)"
        )
        project.run_sql("insert into {schema}.pairs values (1, 'x', timestamp'2024-01-01 10:00:00')")
        drop = "alter table {schema}.pairs drop partition "
        with pytest.raises(
            Exception, match="does not have the values of at; .* give all of c, at in PARTITION"
        ) as told:
            project.run_sql(f"{drop} (at = '2024-01-01 10:00:00')")
        assert "UNRESOLVED_COLUMN" not in str(told.value)
        with pytest.raises(Exception, match="has type timestamp; write it as '2026-01-31 10:00:00'"):
            project.run_sql(f"{drop} (c = 'x', at = '1704103200000000')")
        project.run_sql(f"{drop} (c = 'x', at = '2024-01-01 10:00:00')")
        assert project.run_sql("select * from {schema}.pairs", fetch="all") == []

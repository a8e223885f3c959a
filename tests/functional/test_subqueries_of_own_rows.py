"""UPDATE, DELETE, MERGE and REPLACE WHERE that read the table which they change, in a subquery or as their source."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtBaseException
from hudi_engine import HudiTable
from hudi_engine.table.txn.transaction import WriteTransaction
from pyspark.sql import SparkSession

from dbt.adapters.hudi.rows import builds

pytestmark = pytest.mark.sampled

# What each makes of the row (1, 100, 'a') when Spark is still shown (1, 1, 'a').
STANDING = {
    "merge into T using (select id, n + 1 as n from T) s on t.id = s.id when matched then update set n = s.n": 101,
    "merge into T using T_seen s on t.id = s.id when matched then update set n = s.n + 1": 101,
    "update T set n = (select max(n) + 1 from T) where id = 1": 101,
    "update T set n = (select max(n) + 1 from T_seen) where id = 1": 101,
    "delete from T where n > (select max(n) from T)": 100,
    "insert into T replace where n < (select max(n) from T) select 2 as id, 5 as n, 'a' as d": 100,
}
# What changes nothing any more, or something else, once the row of b is (2, 1000, 'b').
DEPENDING = (
    "update T set n = (select sum(n) from T) where d = 'a'",
    "update T set n = (select sum(n) from T_seen) where d = 'a'",
    "delete from T o where d = 'a' and exists (select 1 from T x where x.d = 'b' and x.n = 10)",
    "insert into T replace where d = 'a' and 10 = (select max(n) from T) select 3 as id, 3 as n, 'a' as d",
)
PREDICATED = """
{{ config(materialized='incremental', incremental_strategy='replace_where',
  incremental_predicates=["n < (select max(n) from " ~ this ~ ")"]) }}
select 1 as id, {{ 50 if is_incremental() else 10 }} as n
"""

REPLACED = """
{{ config(materialized='incremental', partition_by='d', incremental_strategy='replace_where',
  incremental_predicates=["d = 'a'", %s]) }}
select 1 as id, {{ 50 if is_incremental() else 10 }} as n, 'a' as d
"""
BOUND = "'n >= (select max(n) - 7 from ' ~ this ~ ')'"
AMONG = "'n * 0 in (select n * 0 from ' ~ this ~ ')'"

NUMBERS = itertools.count()


def first_words(sql: str) -> str:
    """What a statement is called in the report."""
    return sql[:20].strip() + (" of a view" if "T_seen" in sql else "")


class TestStatementsThatReadTheirOwnTable:
    @pytest.fixture
    def table(self, project: Any) -> str:
        """A table with a row in each of two partitions, which a view shows too."""
        name = f"t{next(NUMBERS)}"
        project.run_sql(
            f"create table {{schema}}.{name} using hudi tblproperties (primaryKey='id') partitioned by (d) as "
            "select * from values (1, 1, 'a'), (2, 10, 'b') as r(id, n, d)"
        )
        project.run_sql(f"create view {{schema}}.{name}_seen as select * from {{schema}}.{name}")
        return name

    @pytest.fixture
    def others(self, project: Any, table: str) -> Callable[[str, int], Any]:
        """Another writer, who sets the n of a row."""
        base = str(project.project_root / "warehouse" / project.test_schema / table)
        spark = SparkSession.builder.getOrCreate()
        return lambda where, n: HudiTable.open(spark, base).update_where(where, {"n": str(n)})

    def run(self, project: Any, table: str, sql: str) -> None:
        project.run_sql(sql.replace("T", f"{{schema}}.{table}").replace("t.id", f"{table}.id"))

    def rows(self, project: Any, name: str) -> list[tuple[Any, ...]]:
        found = project.run_sql(f"select id, n from {{schema}}.{name}", fetch="all")
        return sorted(tuple(row) for row in found)

    @pytest.mark.parametrize("sql", STANDING, ids=first_words)
    def test_they_read_what_stands_though_spark_was_not_shown_it_yet(
        self, project: Any, table: str, others: Any, sql: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project.run_sql(f"delete from {{schema}}.{table} where id = 2")
        with monkeypatch.context() as killed:
            killed.setattr(HudiTable, "_published", lambda _table, result, _options: result)
            others("id = 1", 100)
        self.run(project, table, sql)
        assert self.rows(project, table)[0] == (1, STANDING[sql])

    @pytest.mark.parametrize("sql", DEPENDING, ids=first_words)
    def test_what_others_change_in_any_partition_that_they_had_read_is_a_conflict(
        self, project: Any, table: str, others: Any, sql: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begin = WriteTransaction.begin

        def overtaken(*args: Any, **named: Any) -> Any:
            monkeypatch.undo()
            others("id = 2", 1000)
            return begin(*args, **named)

        monkeypatch.setattr(WriteTransaction, "begin", overtaken)
        with pytest.raises(DbtBaseException, match="WriteConflictError"):
            self.run(project, table, sql)
        assert self.rows(project, table) == [(1, 1), (2, 1000)]

    def test_a_soft_delete_that_reads_another_table_has_no_conflict_for_the_name(
        self, project: Any, table: str, others: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Others change another partition meanwhile; only the name of the other table has that of this one in it."""
        begin = WriteTransaction.begin
        project.run_sql(f"create table {{schema}}.forget_{table} using hudi as select 1 as {table}_id")

        def overtaken(*args: Any, **named: Any) -> Any:
            monkeypatch.undo()
            others("id = 2", 1000)
            return begin(*args, **named)

        monkeypatch.setattr(WriteTransaction, "begin", overtaken)
        name = f"{project.test_schema}.{table}"
        asked = f"d = 'a' and id in (select {table}_id from {project.test_schema}.forget_{table})"
        project.adapter.hudi_soft_delete(name, asked)
        assert self.rows(project, table) == [(1, None), (2, 1000)]

    def test_a_soft_delete_asks_what_stands(
        self, project: Any, table: str, others: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as killed:
            killed.setattr(HudiTable, "_published", lambda _table, result, _options: result)
            others("id = 1", 100)
        name = f"{project.test_schema}.{table}"
        project.adapter.hudi_soft_delete(name, f"n = (select max(n) from {name})")
        assert self.rows(project, table) == [(1, None), (2, 10)]


class TestPredicatesOfModels:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"predicated.sql": PREDICATED, "bound.sql": REPLACED % BOUND, "among.sql": REPLACED % AMONG}

    @pytest.mark.parametrize(("name", "conflicts"), [("bound", False), ("among", True)])
    def test_what_others_add_meanwhile_is_a_conflict_unless_one_value_alone_is_asked(
        self, project: Any, monkeypatch: pytest.MonkeyPatch, name: str, conflicts: bool
    ) -> None:
        run_dbt(["run", "--select", name])
        begin = WriteTransaction.begin

        def overtaken(*args: Any, **named: Any) -> Any:
            monkeypatch.undo()
            base = str(project.project_root / "warehouse" / project.test_schema / name)
            table = HudiTable.open(SparkSession.builder.getOrCreate(), base)
            table.insert(table.spark.sql("select 7 as id, 7 as n, 'other' as d"))
            return begin(*args, **named)

        monkeypatch.setattr(WriteTransaction, "begin", overtaken)
        (result,) = run_dbt(["run", "--select", name], expect_pass=not conflicts).results
        assert ("WriteConflictError" in result.message) is conflicts
        found = project.run_sql(f"select id, n from {{schema}}.{name} where id = 1", fetch="all")
        assert [tuple(row) for row in found] == [(1, 10 if conflicts else 50)]

    def test_they_read_what_stands_though_spark_was_not_shown_it_yet(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run_dbt(["run", "--select", "predicated"])
        current_table = builds.current_table

        def meanwhile(*given: Any) -> HudiTable:
            monkeypatch.undo()
            with monkeypatch.context() as killed:
                killed.setattr(HudiTable, "_published", lambda _table, result, _options: result)
                found = current_table(*given)
                found.insert(found.spark.sql("select 2 as id, 100 as n"))
            return current_table(*given)

        monkeypatch.setattr(builds, "current_table", meanwhile)
        run_dbt(["run", "--select", "predicated"])
        found = project.run_sql("select id, n from {schema}.predicated", fetch="all")
        assert sorted(tuple(row) for row in found) == [(1, 50), (2, 100)]

"""NOT NULL of a CREATE TABLE, which the rows of later statements are asked for and the table is not."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtBaseException
from hudi_engine import HudiTable
from hudi_engine.table.write import pipeline
from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled

REFUSED = "declared NOT NULL in name, where a row of this statement is null; nothing was written"
BRINGS_NULL = [
    "insert into T values (3, 1, null, 'z')",
    "insert overwrite T values (3, 1, null, 'z')",
    "insert overwrite T partition (d = 'a') (id) values (3)",
    "insert into T replace where d = 'a' select 3, 1, null, 'a'",
    "update T set name = nullif(name, 'b') where id = 2",
    "merge into T t using (select 2 id, 'a' d) s on t.id = s.id and t.d = s.d when matched then update set name = null",
    "merge into T t using (select 3 id, 'a' d) s on t.id = s.id and t.d = s.d when not matched then insert (id, d) values (id, d)",
    "merge into T t using (select 9 id, 'a' d) s on t.id = s.id and t.d = s.d when not matched by source and t.id = 2 then update set name = null",
    "merge into T t using (select 2 id, 5 n, cast(null as string) name, 'a' d) s on t.id = s.id and t.d = s.d when matched then update set *",
]


class TestNotNullOfCreateTable:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"m.sql": "select 1 as id"}

    @pytest.mark.parametrize("options", ["", "options (primaryKey = 'id', type = 'mor')"])
    def test_a_statement_that_would_leave_a_null_writes_nothing(self, project: Any, options: str) -> None:
        project.run_sql("drop table if exists {schema}.log")
        columns = "id int not null, name string not null comment 'who', note string"
        project.run_sql(f"create table {{schema}}.log ({columns}) using hudi {options}")
        project.run_sql("insert into {schema}.log values (1, 'a', null), (2, 'b', 'x')")
        project.run_sql("update {schema}.log set note = null where id = 2")
        broken = [
            "insert into {schema}.log values (3, null, 'x'), (4, 'd', 'x')",
            "insert into {schema}.log (id) values (5)",
            "update {schema}.log set name = note",
        ]
        for statement in broken:
            with pytest.raises(Exception, match="NOT NULL in name, where"):
                project.run_sql(statement)
        rows = project.run_sql("select * from {schema}.log order by id", fetch="all")
        assert [tuple(row) for row in rows] == [(1, "a", None), (2, "b", None)]
        described = {row[0]: row[2] for row in project.run_sql("describe {schema}.log", fetch="all")}
        assert described["name"] == "who"
        project.run_sql("alter table {schema}.log drop column NAME")
        project.run_sql("alter table {schema}.log add columns (name string)")
        project.run_sql("insert into {schema}.log (id) values (5)")
        described = {row[0]: row[2] for row in project.run_sql("describe {schema}.log", fetch="all")}
        assert not described["name"], "it is another column"
        with pytest.raises(Exception, match=r"NOT NULL in id, where|null or empty record key"):
            project.run_sql("insert into {schema}.log (note) values ('x')")


class TestNotNullAsksTheRowsThatComeAlone:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"m.sql": "select 1 as id"}

    def made(self, project: Any, name: str, options: str = "primaryKey = 'id'") -> HudiTable:
        """Make a table with a row of which another writer, who does not know of the rule, left the name out."""
        project.run_sql(f"drop table if exists {{schema}}.{name}")
        project.run_sql(
            f"create table {{schema}}.{name} (id int, n int, name string not null, d string) using hudi "
            f"options ({options}) partitioned by (d)"
        )
        base = project.project_root / "warehouse" / project.test_schema / name
        other = HudiTable.open(SparkSession.builder.getOrCreate(), str(base))
        other.upsert(other.spark.createDataFrame([(1, 1, None, "a"), (2, 1, "b", "a")], other.schema))
        return other

    def rows(self, project: Any, name: str) -> list[tuple[Any, ...]]:
        found = project.run_sql(f"select id, n, name, d from {{schema}}.{name}", fetch="all")
        return sorted(map(tuple, found))

    STORED = [(1, 1, None, "a"), (2, 1, "b", "a")]

    def test_a_statement_that_brings_a_null_is_told_the_row(self, project: Any) -> None:
        self.made(project, "refused")
        for statement in BRINGS_NULL:
            with pytest.raises(DbtBaseException, match=REFUSED) as told:
                project.run_sql(statement.replace("T ", "{schema}.refused ", 1))
            assert '"name":null' in str(told.value) and "_hoodie" not in str(told.value), statement
        assert self.rows(project, "refused") == self.STORED

    @pytest.mark.parametrize(
        ("statement", "left"),
        [
            ("insert into T values (3, 1, 'c', 'z')", [*STORED, (3, 1, "c", "z")]),
            ("update T set n = 5", [(1, 5, None, "a"), (2, 5, "b", "a")]),
            (
                "merge into T t using (select 1 id, 'a' d) s on t.id = s.id and t.d = s.d when matched then update set n = 5",
                [(1, 5, None, "a"), (2, 1, "b", "a")],
            ),
            (
                "merge into T t using (select 1 id, 'a' d) s on t.id = s.id and t.d = s.d when matched then delete "
                "when not matched by source then update set name = 'c'",
                [(2, 1, "c", "a")],
            ),
            (
                "merge into T t using (select * from values (1, 'a'), (3, 'z') as v(id, d)) s on t.id = s.id and t.d = s.d "
                "when matched then update set n = 5 when not matched then insert (id, name, d) values (id, 'c', d)",
                [(1, 5, None, "a"), (2, 1, "b", "a"), (3, None, "c", "z")],
            ),
            (
                "merge into T t using (select 2 id, 7 n, 'c' name, 'a' d) s on t.id = s.id and t.d = s.d "
                "when matched then update set * when not matched by source then update set n = 5",
                [(1, 5, None, "a"), (2, 7, "c", "a")],
            ),
            (
                "insert into T select s.id, 1, s.name, 'z' from values (3, 'c'), (4, null) as s(id, name) "
                "join values (3), (5) as o(id) on s.id = o.id",
                [*STORED, (3, 1, "c", "z")],
            ),
        ],
    )
    def test_what_is_stored_or_left_out_is_not_asked(
        self, project: Any, statement: str, left: list[tuple[Any, ...]]
    ) -> None:
        self.made(project, "kept")
        project.run_sql(statement.replace("T ", "{schema}.kept ", 1))
        assert self.rows(project, "kept") == left

    def test_a_row_that_goes_to_another_partition_is_asked_what_its_clause_gives_it(
        self, project: Any
    ) -> None:
        everywhere = "primaryKey = 'id', hoodie.index.type = 'GLOBAL_BLOOM', hoodie.bloom.index.update.partition.path = 'true'"
        self.made(project, "moved", everywhere)
        merge = (
            "merge into {schema}.moved t using (select ID id, 7 n, cast(null as string) name, 'b' d) s on t.id = s.id "
            "when matched then update set SET when not matched then insert *"
        )
        project.run_sql(merge.replace("ID", "1").replace("SET", "d = s.d"))
        assert self.rows(project, "moved") == [(1, 1, None, "b"), (2, 1, "b", "a")]
        for key, given in (("2", "d = s.d, name = s.name"), ("3", "n = 5")):
            with pytest.raises(DbtBaseException, match=REFUSED):
                project.run_sql(merge.replace("ID", key).replace("SET", given))

    def test_a_row_that_stays_as_it_is_for_being_newer_is_not_asked(self, project: Any) -> None:
        self.made(project, "newer", "primaryKey = 'id', preCombineField = 'n'")
        project.run_sql(
            "merge into {schema}.newer t using (select 2 id, 0 n, cast(null as string) name, 'a' d) s "
            "on t.id = s.id and t.d = s.d when matched then update set * when not matched then insert *"
        )
        assert self.rows(project, "newer") == self.STORED

    def test_null_that_says_nothing_leaves_the_stored_value(self, project: Any) -> None:
        payload = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
        self.made(
            project,
            "filling",
            f"primaryKey = 'id', preCombineField = 'n', hoodie.datasource.write.payload.class = '{payload}'",
        )
        merge = (
            "merge into {schema}.filling t using (select ID id, 2 n, cast(null as string) name, 'a' d) s "
            "on t.id = s.id and t.d = s.d when matched then update set * when not matched then insert *"
        )
        project.run_sql(merge.replace("ID", "2"))
        assert self.rows(project, "filling") == [(1, 1, None, "a"), (2, 2, "b", "a")]
        with pytest.raises(DbtBaseException, match=REFUSED):
            project.run_sql(merge.replace("ID", "3"))

    @pytest.mark.parametrize(
        "statement", ["insert into T values (3, 1, 'c', 'b')", "update T set name = 'c' where d = 'a'"]
    )
    def test_what_another_writer_adds_elsewhere_meanwhile_is_no_conflict(
        self, project: Any, statement: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other = self.made(project, "shared")
        inspect = pipeline.inspect

        def overtaken(*arguments: Any) -> None:
            monkeypatch.undo()
            other.insert(other.spark.createDataFrame([(9, 1, "z", "z")], other.schema))
            inspect(*arguments)

        monkeypatch.setattr(pipeline, "inspect", overtaken)
        project.run_sql(statement.replace("T ", "{schema}.shared ", 1))
        assert (9, 1, "z", "z") in self.rows(project, "shared")
        assert "c" in {row[2] for row in self.rows(project, "shared")}

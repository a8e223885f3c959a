"""MERGE and the keys of rows that it inserts or moves."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtBaseException
from hudi_engine.spark.write.rows import settled

from tests.helpers.hudi_rs import rows_by_hudi_rs

pytestmark = pytest.mark.sampled

COLUMNS = ["id", "p", "n", "v"]


class TestKeysOfTheWholeTable:
    """A table whose key lacks the partition column keeps one row a key in all partitions (a global index)."""

    @pytest.mark.core
    @pytest.mark.parametrize("kind", ["cow", "mor"])
    def test_a_row_moves_with_its_partition_and_is_not_inserted_beside_that_of_another(
        self, project: Any, kind: str
    ) -> None:
        name = f"moving_{kind}"
        project.run_sql(
            f"create table {{schema}}.{name} (id int, n int, v string, p string) using hudi options (primaryKey 'id', "
            f"type '{kind}') partitioned by (p)"
        )
        project.run_sql(f"insert into {{schema}}.{name} values (1, 1, 'x', 'a'), (2, 1, 'x', 'a')")
        given = f"merge into {{schema}}.{name} t using (select 1 id, 5 n, 'y' v, 'b' p) s on t.id = s.id"
        with pytest.raises(DbtBaseException, match="id 1 is stored and not matched.* compare id in ON"):
            project.run_sql(f"{given} and t.p = s.p when not matched then insert *")
        project.run_sql(f"{given} when matched then update set * when not matched then insert *")
        path = str(project.project_root / "warehouse" / project.test_schema / name)
        assert sorted(rows_by_hudi_rs(path, COLUMNS)) == [(1, "b", 5, "y"), (2, "a", 1, "x")]


class TestRepeatedNewKeys:
    """Of several new rows with one key one is inserted."""

    TABLES = {
        "cow": ("", 1),
        "mor": (", type 'mor'", 1),
        "whole": (") partitioned by (p", 1),
        "partitioned": (", 'hoodie.index.type' 'SIMPLE') partitioned by (p", 2),
        "mor_partitioned": (", 'hoodie.index.type' 'BLOOM', type 'mor') partitioned by (p", 2),
        "bucket": (", type 'mor', 'hoodie.index.type' 'BUCKET', 'hoodie.bucket.index.num.buckets' '2'", 1),
        "filling": (", 'hoodie.datasource.write.payload.class' 'org.apache.hudi.common.model.PartialUpdateAvroPayload'", 1),
    }  # fmt: skip

    def made(self, project: Any, name: str, options: str) -> None:
        project.run_sql(f"drop table if exists {{schema}}.{name}")
        project.run_sql(
            f"create table {{schema}}.{name} (id int, n int, v string, p string) using hudi options (primaryKey 'id'{options})"
        )

    def rows(self, project: Any, name: str) -> list[tuple[Any, ...]]:
        path = str(project.project_root / "warehouse" / project.test_schema / name)
        return sorted(rows_by_hudi_rs(path, COLUMNS))

    @pytest.mark.core
    @pytest.mark.parametrize("kind", TABLES)
    def test_it_is_the_one_with_the_highest_precombine_value_beside_rows_that_change(
        self, project: Any, kind: str
    ) -> None:
        options, places = self.TABLES[kind]
        self.made(project, f"newest_{kind}", f", preCombineField 'n'{options}")
        project.run_sql(
            f"insert into {{schema}}.newest_{kind} values (1, 1, 'x', 'a'), (2, 1, 'x', 'a'), (3, 1, 'x', 'a')"
        )
        project.run_sql(
            f"merge into {{schema}}.newest_{kind} t using (select id, n, v, p from values (1, 2, 'y', 'a'), (2, 2, 'y', 'a'), "
            "(7, 1, 'old', 'a'), (7, 3, 'new', 'a'), (7, 2, 'mid', 'a'), (8, 2, 'b', 'b'), (8, 1, 'a', 'a') as q(id, n, v, p)) s "
            "on t.id = s.id and t.p = s.p when matched and s.id = 2 then delete when matched then update set * "
            "when not matched then insert *"
        )
        eight = [(8, "a", 1, "a"), (8, "b", 2, "b")][-places:]
        others = [(1, "a", 2, "y"), (3, "a", 1, "x"), (7, "a", 3, "new")]
        assert self.rows(project, f"newest_{kind}") == [*others, *eight]

    def test_rows_that_fill_each_others_gaps_are_inserted_as_one(self, project: Any) -> None:
        self.made(project, "gaps", f", preCombineField 'n'{self.TABLES['filling'][0]}")
        project.run_sql("insert into {schema}.gaps values (1, 1, 'x', 'a')")
        project.run_sql(
            "merge into {schema}.gaps t using (select 7 id, 1 n, 'v' v, null p union all select 7, 2, null, 'p') s on t.id = s.id "
            "when not matched then insert *"
        )
        assert self.rows(project, "gaps") == [(1, "a", 1, "x"), (7, "p", 2, "v")]

    def test_copies_of_a_stored_key_are_not_taken_for_one(self, project: Any) -> None:
        self.made(project, "copies", "")
        project.run_sql("insert into {schema}.copies values (1, 1, 'x', 'a'), (1, 2, 'y', 'a')")
        stored = self.rows(project, "copies")
        assert len(stored) == 2
        with pytest.raises(DbtBaseException):
            project.run_sql(
                "merge into {schema}.copies t using (select 1 id, 7 n union all select 5, 5) s on t.id = s.id "
                "when matched then update set n = s.n when not matched then insert (id, n) values (s.id, s.n)"
            )
        assert self.rows(project, "copies") == stored


class TestPartitionsOfTimes:
    """Many times make one partition, in which a key is there once."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        config = (
            "materialized='table', unique_key='id', partition_by=['at:timestamp'], index='%s', table_type='%s', options={"
            "'hoodie.datasource.write.keygenerator.type': 'CUSTOM', 'hoodie.keygen.timebased.timestamp.type': 'EPOCHMICROSECONDS', "
            "'hoodie.keygen.timebased.output.dateformat': 'yyyy-MM-dd'}"
        )
        rows = "select 1 as id, timestamp'2026-11-01 10:00:00' as at, 'a' as v union all select 2, timestamp'2026-11-02 10:00:00', 'b'"
        return {
            f"{kind}.sql": f"{{{{ config({config % ('simple', kind)}) }}}} {rows}" for kind in ("cow", "mor")
        }

    @pytest.mark.core
    @pytest.mark.parametrize("kind", ["cow", "mor"])
    def test_another_time_of_the_day_stays_and_one_of_another_day_is_another_key(
        self, project: Any, kind: str
    ) -> None:
        run_dbt(["run", "--select", kind, "--full-refresh"])

        def merge(time: str, *, on: str, clause: str) -> None:
            project.run_sql(
                f"merge into {{schema}}.{kind} t using (select 1 id, timestamp'{time}' at, 'new' v) s on t.id = s.id{on} {clause}"
            )

        def rows() -> list[tuple[Any, ...]]:
            # hudi-rs does not read tables with partitions of this kind
            found = project.run_sql(f"select id, day(at), v from {{schema}}.{kind}", fetch="all")
            return sorted(map(tuple, found))

        insert = "when not matched then insert *"
        with pytest.raises(
            DbtBaseException,
            match="stored and not matched.* compare id, at in ON,.* of a time compare the part that its key or partition has",
        ):
            merge("2026-11-01 12:00:00", on=" and t.at = s.at", clause=insert)
        with pytest.raises(DbtBaseException, match="changes id, at, by which a stored row is found"):
            merge("2026-11-03 12:00:00", on="", clause="when matched then update set *")
        assert rows() == [(1, 1, "a"), (2, 2, "b")]
        merge("2026-11-01 12:00:00", on="", clause="when matched then update set *")
        assert rows() == [(1, 1, "new"), (2, 2, "b")]
        merge("2026-11-03 12:00:00", on=" and to_date(t.at) = to_date(s.at)", clause=insert)
        assert rows() == [(1, 1, "new"), (1, 3, "new"), (2, 2, "b")]


class TestPlansOfMerges:
    """What a MERGE asks of Spark."""

    WAYS = {
        "when matched then update set *": [False],
        "when matched then update set * when not matched by source then delete": [False],
        "when matched and t.n < 5 then update set * when not matched then insert *": [True],
        # an upsert, which joins nothing
        "when matched then update set * when not matched then insert *": [],
    }

    @pytest.mark.parametrize("clauses", WAYS)
    def test_only_what_may_insert_sorts_its_rows_by_key_for_new_ones_of_one_key(
        self, project: Any, monkeypatch: pytest.MonkeyPatch, clauses: str
    ) -> None:
        plans, settle = [], settled.settled

        def noting(placed: Any, *more: Any) -> Any:
            plans.append(placed._jdf.queryExecution().optimizedPlan().toString())
            return settle(placed, *more)

        monkeypatch.setattr(settled, "settled", noting)
        project.run_sql("drop table if exists {schema}.planned")
        project.run_sql(
            "create table {schema}.planned (id int, p string, n int, v string) using hudi options (primaryKey 'id')"
        )
        project.run_sql("insert into {schema}.planned values (1, 'a', 1, 'x')")
        project.run_sql(
            "merge into {schema}.planned t using (select 1 id, 'a' p, 2 n, 'y' v) s on t.id = s.id " + clauses
        )
        path = str(project.project_root / "warehouse" / project.test_schema / "planned")
        assert rows_by_hudi_rs(path, COLUMNS) == [(1, "a", 2, "y")]
        assert [("Window" in plan and "__hudi_alone" in plan) for plan in plans] == self.WAYS[clauses]


class TestKeysWithoutValues:
    """Null equals nothing, though the keys and partitions of two such rows are one."""

    EMPTY = ["cast(null as string)", "''", "'__HIVE_DEFAULT_PARTITION__'"]

    def made(self, project: Any, name: str, options: str, rows: str) -> None:
        project.run_sql(f"drop table if exists {{schema}}.{name}")
        project.run_sql(
            f"create table {{schema}}.{name} (id int, v string, p string) using hudi options ({options}"
        )
        project.run_sql(f"insert into {{schema}}.{name} values {rows}")

    def rows(self, project: Any, name: str) -> list[tuple[Any, ...]]:
        path = str(project.project_root / "warehouse" / project.test_schema / name)
        return rows_by_hudi_rs(path, ["id", "v", "p"])

    @pytest.mark.core
    @pytest.mark.parametrize("kind", ["cow", "mor"])
    def test_a_key_of_the_partition_without_a_value_is_not_inserted_beside_itself(
        self, project: Any, kind: str
    ) -> None:
        options = f"primaryKey 'id', type '{kind}', 'hoodie.index.type' 'SIMPLE') partitioned by (p"
        self.made(project, f"empty_{kind}", f"{options})", "(1, 'x', null), (2, 'x', 'a'), (3, 'x', '')")
        stored = self.rows(project, f"empty_{kind}")
        given = f"merge into {{schema}}.empty_{kind} t using (select %s id, 'y' v, %s p) s on t.id = s.id and t.p %s s.p %s"
        both = "when matched then update set * when not matched then insert *"
        for key, value, equals in ((1, 0, "="), (3, 0, "="), (1, 1, "="), (3, 2, "="), (1, 2, "<=>")):
            with pytest.raises(
                DbtBaseException, match=f"id {key}.* stored and not matched.*compare id, p in ON, by <=>"
            ):
                project.run_sql(given % (key, self.EMPTY[value], equals, both))
            assert self.rows(project, f"empty_{kind}") == stored
        project.run_sql(given % (1, self.EMPTY[0], "<=>", both))
        project.run_sql(given % (2, self.EMPTY[0], "=", both))
        assert self.rows(project, f"empty_{kind}") == [
            (1, "y", None), (2, "x", "a"), (2, "y", None), (3, "x", ""),
        ]  # fmt: skip

    def test_a_row_may_come_to_be_without_a_value_in_another_way(self, project: Any) -> None:
        options = "primaryKey 'id', 'hoodie.index.type' 'SIMPLE') partitioned by (p)"
        self.made(project, "other_way", options, "(1, 'x', null), (2, 'x', 'a')")
        given = "merge into {schema}.other_way t using (select %s id, 'y' v, '' p) s on t.id = s.id when matched then update set *"
        project.run_sql(given % 1)
        with pytest.raises(DbtBaseException, match="changes id, p, by which a stored row is found"):
            project.run_sql(given % 2)
        assert self.rows(project, "other_way") == [(1, "y", ""), (2, "x", "a")]

    @pytest.mark.core
    @pytest.mark.parametrize("kind", ["cow", "mor"])
    def test_a_part_of_a_key_without_a_value_is_found_again(self, project: Any, kind: str) -> None:
        self.made(
            project, f"parts_{kind}", f"primaryKey 'id,p', type '{kind}')", "(1, 'x', null), (3, 'x', '')"
        )
        stored = self.rows(project, f"parts_{kind}")
        given = f"merge into {{schema}}.parts_{kind} t using (select %s id, 'y' v, %s p) s on t.id = s.id and t.p = s.p %s"
        insert = "when not matched then insert *"
        for key, value in ((1, self.EMPTY[0]), (1, "'__null__'"), (3, "'__empty__'")):
            with pytest.raises(DbtBaseException, match=f"id {key}.* stored and not matched"):
                project.run_sql(given % (key, value, insert))
            assert self.rows(project, f"parts_{kind}") == stored
        project.run_sql(given % (1, "''", insert))
        assert self.rows(project, f"parts_{kind}") == [(1, "x", None), (1, "y", ""), (3, "x", "")]


class TestKeysThatAreMade:
    """A row that is inserted with another key than ON compares may have the key of a stored one."""

    CLAUSES = [
        ("t.id = s.id", "insert (id, v) values (s.id + 1, s.v)"),
        ("t.id = s.id", "insert (v, id) values (s.v, s.other)"),
        ("t.id = s.id", "insert (id, v) values (s.inside.id, s.v)"),
        ("t.id = s.more.id", "insert (id, v) values (s.more.id + 1, s.v)"),
    ]

    @pytest.mark.core
    @pytest.mark.parametrize("kind", ["cow", "mor"])
    def test_it_is_refused_for_a_key_that_is_stored_and_inserted_for_another(
        self, project: Any, kind: str
    ) -> None:
        name = f"made_{kind}"
        project.run_sql(
            f"create table {{schema}}.{name} (id int, v string) using hudi options (primaryKey 'id', type '{kind}')"
        )
        project.run_sql(f"insert into {{schema}}.{name} values (2, 'x')")
        source = "select 1 id, 2 other, named_struct('id', 2) inside, named_struct('id', 1) more, 'y' v"
        path = str(project.project_root / "warehouse" / project.test_schema / name)
        for on, clause in self.CLAUSES:
            with pytest.raises(DbtBaseException, match="id 2 is stored and not matched"):
                project.run_sql(
                    f"merge into {{schema}}.{name} t using ({source}) s on {on} when not matched then {clause}"
                )
            assert rows_by_hudi_rs(path, ["id", "v"]) == [(2, "x")]
        project.run_sql(
            f"merge into {{schema}}.{name} t using ({source}) s on t.id = s.id when not matched then "
            "insert (id, v) values (s.id + 2, s.v)"
        )
        assert rows_by_hudi_rs(path, ["id", "v"]) == [(2, "x"), (3, "y")]

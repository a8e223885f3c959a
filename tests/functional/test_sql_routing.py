"""SQL of hooks, operations and users that changes Hudi tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtBaseException

from dbt.adapters.hudi.spark.warehouse import Warehouse

pytestmark = pytest.mark.sampled

ORDERS = """
{{ config(materialized='table', unique_key='id', partition_by='dt') }}
select 1 as id, 'a' as name, 'x' as dt union all select 2, 'b', 'y'
"""
KEYLESS = "{{ config(materialized='table') }} select 1 as id, 'a' as name union all select 2, 'it\\'s'"


class TestStatements:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": ORDERS, "keyless.sql": KEYLESS}

    @pytest.fixture(scope="class")
    def built(self) -> dict[str, int]:
        """The files of the tables as dbt built them, with their times."""
        return {}

    @pytest.fixture(autouse=True)
    def _fresh_tables(self, project: Any, built: dict[str, int]) -> None:
        """Build the tables, unless the test before has left them as they were."""

        def files() -> dict[str, int]:
            found = (project.project_root / "warehouse").visit(lambda each: each.check(file=1))
            return {str(each): each.stat().mtime_ns for each in found}

        if not built or files() != built:
            run_dbt(["run"])
            built.clear()
            built.update(files())

    def rows(self, project: Any, name: str = "orders") -> list[tuple[Any, ...]]:
        return [
            tuple(row) for row in project.run_sql(f"select * from {{schema}}.{name} order by id", fetch="all")
        ]

    @pytest.mark.parametrize(
        ("statement", "instead"),
        [
            ("optimize {schema}.orders zorder by (id)", "hudi_compact"),
            ("vacuum {schema}.orders retain 168 hours", "hudi_clean"),
        ],
    )
    def test_services_of_delta_are_refused_with_the_name_of_ours(
        self, project: Any, statement: str, instead: str
    ) -> None:
        with pytest.raises(DbtBaseException, match=f"Hudi does not have; .*{instead}"):
            project.run_sql(statement)

    @pytest.mark.parametrize(
        "statement",
        [
            "delete from {{ target.schema }}.orders",
            "/* c */ insert into {{ target.schema }}.orders values (9, 'i', 'x')",
            "create or replace table {{ target.schema }}.orders as select 1 as id",
            "call show_commits(table => 'orders')",
        ],
        ids=lambda each: each.split()[-1],
    )
    def test_what_is_no_query_is_not_shown_and_not_run(self, project: Any, statement: str) -> None:
        before = self.rows(project)
        with pytest.raises(
            DbtBaseException, match="puts a limit behind a query.*(DELETE|INSERT|CREATE|CALL)"
        ):
            run_dbt(["show", "--inline", statement])
        assert self.rows(project) == before

    def test_insert_by_position_and_by_name(self, project: Any) -> None:
        project.run_sql("insert into {schema}.orders values (3, 'c', 'x')")
        project.run_sql("with n as (select 4 as i) insert into {schema}.orders (dt, id) select 'z', i from n")
        assert self.rows(project)[2:] == [(3, "c", "x"), (4, None, "z")]

    def test_insert_of_a_wrong_number_of_columns_is_refused(self, project: Any) -> None:
        with pytest.raises(DbtBaseException, match="has 2 columns .* but 3 are expected: id, name, dt"):
            project.run_sql("insert into {schema}.orders select 1, 'x'")

    def test_insert_overwrite_replaces_a_partition_or_the_table(self, project: Any) -> None:
        project.run_sql("insert overwrite {schema}.orders partition (dt = 'x') select 7, 'seven'")
        assert self.rows(project) == [(2, "b", "y"), (7, "seven", "x")]
        project.run_sql("insert overwrite {schema}.orders partition (dt = 'x') select 7, 'seven' where false")
        assert self.rows(project) == [(2, "b", "y")]
        project.run_sql("insert overwrite {schema}.orders select 9, 'nine', 'z'")
        assert self.rows(project) == [(9, "nine", "z")]

    @pytest.mark.parametrize(
        ("condition", "query"),
        [
            ("dt = 'x'", "select 7, 'seven', 'x'"),
            ("(dt = 'x') or (dt = 'w' and id is distinct from 5)", "select 7, 'seven', 'x'"),
            ("dt in (select min(dt) from {schema}.orders)", "values (7, 'seven', 'x')"),
            ("dt between 'w' and 'x' and not (id = 5) /* where dt = 'y' */", "select 7, 'seven', 'x'"),
            ("dt like any ('x', 'w') and (id) < 100", "select 7, 'where dt', 'x'"),
        ],
    )
    def test_replace_where_takes_the_rows_of_its_condition_only(
        self, project: Any, condition: str, query: str
    ) -> None:
        project.run_sql(f"insert into {{schema}}.orders replace where {condition} {query}")
        name = "where dt" if "where dt" in query else "seven"
        assert self.rows(project) == [(2, "b", "y"), (7, name, "x")]
        project.run_sql(
            f"with n as ({query}) insert into {{schema}}.orders replace where {condition} select * from n where false"
        )
        assert self.rows(project) == [(2, "b", "y")]

    def test_replace_where_refuses_rows_that_its_condition_would_leave(self, project: Any) -> None:
        with pytest.raises(DbtBaseException, match="dt = 'x'"):
            project.run_sql("insert into {schema}.orders replace where dt = 'x' select 7, 'seven', 'y'")
        assert self.rows(project) == [(1, "a", "x"), (2, "b", "y")]

    @pytest.mark.parametrize(
        ("statement", "reason"),
        [
            ("insert overwrite {schema}.orders partition (dt = 'x') if not exists select 7, 'n'", "IF NOT EXISTS"),
            ("insert into {schema}.orders (id, name, NAME) values (7, 'n', 'm')", "names name more than once"),
            ("insert into {schema}.orders by name select 7 as id, 'n' as name, 'm' as Name", "names name more than once"),
            ("insert into {schema}.orders partition (dt = 'x') (id, dt) values (7, 'y')", "names dt more than once"),
            ("insert into {schema}.orders partition (name = 'x') (id, dt) values (7, 'y')", "its partition columns: dt"),
            ("insert into {schema}.orders partition (nope = 'x') (id, dt) values (7, 'y')", "its partition columns: dt"),
            ("insert into {schema}.keyless partition (id = 7) (name) values ('y')", "its partition columns: none"),
            ("update {schema}.orders set name = 'p', NAME = 'q'", "names name more than once"),
            ("update {schema}.orders set dt.name = 'p'", "dt.name is no column of"),
            ("merge into {schema}.orders d using (select 1 as id) s on d.id = s.id when matched then update set name = 'p', d.name = 'q'", "names name more than once"),
            ("merge into {schema}.orders d using (select 9 as id) s on d.id = s.id when not matched then insert (id, name, name, dt) values (9, 'p', 'q', 'x')", "names name more than once"),
            ("merge into {schema}.orders d using (select 1 as id) s on d.id = s.id when matched then update set s.name = 'p'", "s.name is no column of"),
            ("with n as (select 1 as id) merge into {schema}.orders d using n on d.id = n.id when matched then delete", "WITH in front"),
            ("with n as (select 1 as id) delete from {schema}.orders where id in (select id from n)", "WITH in front"),
        ],
    )  # fmt: skip
    def test_what_would_be_done_otherwise_than_it_is_said_is_refused(
        self, project: Any, statement: str, reason: str
    ) -> None:
        before = self.rows(project), self.rows(project, "keyless")
        with pytest.raises(DbtBaseException, match=reason):
            project.run_sql(statement)
        assert (self.rows(project), self.rows(project, "keyless")) == before

    @pytest.mark.parametrize(
        ("statement", "reason"),
        [
            ("insert into {schema}.orders replace using (dt) select 7, 'n', 'x'", "REPLACE USING"),
            ("insert into {schema}.orders replace on (orders.dt = 'x') select 7, 'n', 'x'", "REPLACE ON"),
            ("insert with schema evolution into {schema}.orders by name select 7 as id, 'n' as name, 'x' as dt, 1 as w", "SCHEMA EVOLUTION"),
            ("merge with schema evolution into {schema}.orders d using (select 1 as id, 'n' as name, 'x' as dt, 1 as w) s on d.id = s.id when matched then update set *", "SCHEMA EVOLUTION"),
        ],
    )  # fmt: skip
    def test_what_only_newer_versions_of_spark_know_is_refused(
        self, project: Any, statement: str, reason: str
    ) -> None:
        with pytest.raises(DbtBaseException, match=f"{reason}|PARSE_SYNTAX_ERROR"):
            project.run_sql(statement)
        assert self.rows(project) == [(1, "a", "x"), (2, "b", "y")]

    def test_update_with_alias_subquery_and_quotes(self, project: Any) -> None:
        project.run_sql(
            "update {schema}.orders as o set o.name = concat(o.name, ', it\\'s') "
            "where o.id between 2 and 3 and o.dt in (select max(dt) from {schema}.orders)"
        )
        assert self.rows(project) == [(1, "a", "x"), (2, "b, it's", "y")]

    @pytest.mark.parametrize(
        ("statement", "left"),
        [
            ("delete from {t} o where not exists (select 1 from {m} c where c.id = o.id)", [(1, "a")]),
            ("delete from {t} where not exists (select 1 from {m} c where c.id = orders.id)", [(1, "a")]),
            ("delete from {t} o where exists (select 1 from {t} x where x.id > o.id)", [(2, "b")]),
            ("delete from {t} o where o.id in (select c.id from {m} c where c.name = o.name)", [(2, "b")]),
            (
                "update {t} o set o.name = 'A' where exists (select 1 from {m} c where c.id = o.id)",
                [(1, "A"), (2, "b")],
            ),
            (
                "update {t} set name = (select max(note) from {m} c where c.id = {t}.id) where orders.id < 9",
                [(1, "n"), (2, None)],
            ),
        ],
    )
    def test_a_subquery_speaks_of_the_row(
        self, project: Any, statement: str, left: list[tuple[Any, ...]]
    ) -> None:
        schema = project.test_schema
        project.run_sql(f"create or replace view {schema}.m as select 1 as id, 'a' as name, 'n' as note")
        try:
            project.run_sql(statement.format(t=f"{schema}.orders", m=f"{schema}.m"))
        finally:
            project.run_sql(f"drop view {schema}.m")
        assert [row[:2] for row in self.rows(project)] == left

    def test_a_subquery_speaks_of_the_row_where_keys_stand_twice(self, project: Any) -> None:
        schema = project.test_schema
        project.run_sql(f"insert into {schema}.orders values (1, 'c', 'x')")
        project.run_sql(
            f"delete from {schema}.orders o where exists (select 1 from values (1, 'a') c(id, name) "
            "where c.id = o.id and c.name = o.name)"
        )
        assert self.rows(project) == [(1, "c", "x"), (2, "b", "y")]

    def test_update_and_delete_without_a_key(self, project: Any) -> None:
        project.run_sql("update {schema}.keyless set name = 'new' where name = 'it\\'s'")
        assert self.rows(project, "keyless") == [(1, "a"), (2, "new")]
        project.run_sql("delete from {schema}.keyless where id = 1")
        assert self.rows(project, "keyless") == [(2, "new")]

    def test_the_response_tells_what_a_statement_did_and_what_changes_nothing_makes_no_commit(
        self, project: Any
    ) -> None:
        table, told = f"{project.test_schema}.orders", []
        for statement in (
            f"update {table} set name = 'A' where id = 1",
            f"delete from {table} where id = 99",
            f"update {table} set name = 'A' where id = 99",
            f"merge into {table} d using (select 99 as id) s on d.id = s.id when matched then delete",
        ):
            with project.adapter.connection_named("response"):
                response, _ = project.adapter.execute(statement, fetch=True)
            told.append((response.rows_updated, response.rows_deleted, response.instant is not None))
        assert told == [(1, 0, True), (0, 0, False), (0, 0, False), (0, 0, False)]

    def test_delete_and_truncate(self, project: Any) -> None:
        project.run_sql("delete from {schema}.orders where dt = 'x'")
        assert self.rows(project) == [(2, "b", "y")]
        project.run_sql("truncate table {schema}.orders")
        assert self.rows(project) == []

    def test_merge_updates_and_inserts_in_one_commit(self, project: Any) -> None:
        project.run_sql(
            "merge into {schema}.orders as d using (select 2 as id, 'B' as name union all select 5, 'e') as s "
            "on d.id = s.id when matched and s.name <> 'x' then update set name = case when s.id = 2 then s.name end "
            "when not matched then insert (id, name, dt) values (s.id, upper(s.name), 'n')"
        )
        assert self.rows(project) == [(1, "a", "x"), (2, "B", "y"), (5, "E", "n")]
        project.run_sql(
            "merge into {schema}.orders d using (select 1 as id) s on d.id = s.id when matched then delete"
        )
        assert self.rows(project) == [(2, "B", "y"), (5, "E", "n")]

    def test_conditions_of_on_leave_rows_alone_that_no_stored_key_has(self, project: Any) -> None:
        project.run_sql(
            "merge into {schema}.orders d using (select 1 as id, 'A' as name, 'x' as dt union all select 7, 'g', 'x') s "
            "on d.id = s.id and d.dt = s.dt and d.dt >= 'a' when matched then update set * when not matched then insert *"
        )
        assert self.rows(project) == [(1, "A", "x"), (2, "b", "y"), (7, "g", "x")]

    @pytest.mark.parametrize(
        ("source", "clauses", "reason"),
        [
            ("7, 'a', 'x'", "d.name = s.name when matched then update set *", "row with id 7 changes id,"),
            ("2, 'a', 'x'", "d.name = s.name when matched then update set id = s.id", "row with id 2 changes id"),
            (
                "1, 'A', 'x'",
                "d.id = s.id and d.name < s.name when matched then update set * when not matched then insert *",
                "row with id 1 is stored and not matched",
            ),
            (
                "1, 'p', 'x' union all select 1, 'q', 'x'",
                "d.id = s.id when matched then update set *",
                "row with id 1 is matched by several rows of the source",
            ),
        ],
    )  # fmt: skip
    def test_a_merge_whose_rows_would_not_be_those_it_means_is_refused(
        self, project: Any, source: str, clauses: str, reason: str
    ) -> None:
        with pytest.raises(DbtBaseException, match=reason):
            project.run_sql(
                f"merge into {{schema}}.orders d using (select * from values (0, '', '') as t(id, name, dt) where id > 0 "
                f"union all select {source}) s on {clauses}"
            )
        assert self.rows(project) == [(1, "a", "x"), (2, "b", "y")]

    def test_columns_are_added_widened_and_dropped(self, project: Any) -> None:
        project.run_sql("alter table {schema}.orders add columns (note string comment 'why', qty int)")
        project.run_sql("insert into {schema}.orders values (3, 'c', 'x', 'n', 1)")
        project.run_sql("alter table {schema}.orders alter column qty type bigint")
        project.run_sql("alter table {schema}.orders drop column note")
        assert self.rows(project) == [(1, "a", "x", None), (2, "b", "y", None), (3, "c", "x", 1)]
        types = dict(tuple(row)[:2] for row in project.run_sql("describe {schema}.orders", fetch="all"))
        assert types["qty"] == "bigint"

    def test_names_move_with_their_files(self, project: Any) -> None:
        project.run_sql("alter table {schema}.orders rename to {schema}.moved")
        assert len(self.rows(project, "moved")) == 2
        folder = project.project_root / "warehouse" / project.test_schema
        assert (folder / "moved" / ".hoodie").isdir() and not (folder / "orders").exists()
        project.run_sql("drop table {schema}.moved")
        assert not (folder / "moved").exists()
        project.run_sql("drop table if exists {schema}.moved")

    @pytest.mark.parametrize("failing", ["schema", "folder", "entry"])
    def test_a_renaming_that_fails_leaves_the_table_as_it_was(
        self, project: Any, monkeypatch: pytest.MonkeyPatch, failing: str
    ) -> None:
        folder = Path(project.project_root) / "warehouse" / project.test_schema
        new = "nowhere.moved" if failing == "schema" else f"{project.test_schema}.moved"
        if failing == "folder":
            (folder / "moved").mkdir()
        if failing == "entry":
            monkeypatch.setattr(
                Warehouse, "register", Mock(side_effect=RuntimeError("the metastore is away"))
            )
        said = {"schema": "SCHEMA_NOT_FOUND", "folder": "lies at", "entry": "the metastore is away"}
        with pytest.raises(Exception, match=said[failing]):
            project.run_sql(f"alter table {{schema}}.orders rename to {new}")
        monkeypatch.undo()
        assert len(self.rows(project)) == 2
        assert (folder / "orders" / ".hoodie").is_dir()
        if failing == "folder":
            (folder / "moved").rmdir()

    def test_create_table_makes_a_hudi_table_unless_told_otherwise(self, project: Any) -> None:
        project.run_sql(
            "create table {schema}.made (id int, name varchar(9)) using hudi options (primaryKey 'id')"
        )
        project.run_sql("insert into {schema}.made values (1, 'a')")
        project.run_sql("create or replace table {schema}.made as select 2 as id")
        assert self.rows(project, "made") == [(2,)]
        project.run_sql("create table {schema}.plain using parquet as select 1 as id")
        folder = project.project_root / "warehouse" / project.test_schema
        assert not (folder / "plain" / ".hoodie").exists()
        project.run_sql("drop table {schema}.plain; drop table {schema}.made")

    def test_responses_and_explain_have_the_files_that_are_skipped(self, project: Any) -> None:
        table = f"{project.test_schema}.indexed"
        project.run_sql(
            f"create table {table} using hudi partitioned by (p) options (primaryKey 'id', "
            "'hoodie.write.table.version' '9', 'hoodie.metadata.enable' 'true') as "
            f"select 1 as id, 'x' as p union all select 2, 'y'; create index record_index on {table} (id)"
        )
        with project.adapter.connection_named("files"):
            for verb in ("select", "explain select"):
                response, rows = project.adapter.execute(f"{verb} * from {table} where id = 2", fetch=True)
                assert f"OK; {table}: 1 of 1 file slices are read" in str(response)
                assert "1 of 2 partitions skipped by record_index" in str(response)
        assert "== Hudi Files ==" in rows.rows[0][0]
        project.run_sql(f"drop table {table}")

    @pytest.mark.parametrize(
        ("statement", "reason"),
        [
            ("alter table {schema}.orders rename column name to label", "cannot rename a column"),
            ("alter table {schema}.orders drop partition (dt = 'never')", "hold no rows in table"),
            ("alter table {schema}.orders add partition (dt = 'x')", "come with its rows"),
            ("from {schema}.keyless insert into {schema}.orders select 1, 'a', 'b'  insert into {schema}.keyless select 1, 'a'", "one INSERT INTO"),
            ("merge into {schema}.keyless d using (select 1 as id) s on d.id = s.id when matched then delete", "no record key"),
            ("update {schema}.orders set dt = 'z'", "part of the key or the partition"),
            ("create table {schema}.alike like {schema}.orders", "makes an empty one with its columns"),
            ("alter table {schema}.orders set tblproperties ('team' = 'me', 'hoodie.cleaner.commits.retained' = '5')", "writes do not look there"),
            ("call run_everything(table => 'x')", "there is no procedure 'run_everything'; there are: archive_commits, .*run_compaction"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_done_is_refused_by_name(self, project: Any, statement: str, reason: str) -> None:
        with pytest.raises(DbtBaseException, match=reason):
            project.run_sql(statement)
        assert len(self.rows(project)) == 2

    def test_the_information_schema_that_packages_ask_tells_the_names(self, project: Any) -> None:
        project.run_sql("create view {schema}.looked as select * from {schema}.orders")
        found = project.run_sql(
            "select distinct table_name as `table_name`, case table_type when 'BASE TABLE' then 'table' else lower(table_type) "
            "end as `table_type` from None.information_schema.tables t where t.table_schema ilike '{schema}' order by 1",
            fetch="all",
        )
        assert [tuple(row) for row in found] == [
            ("keyless", "table"),
            ("looked", "view"),
            ("orders", "table"),
        ]
        known = project.run_sql("select schema_name from information_schema.schemata", fetch="all")
        assert (project.test_schema.lower(),) in [tuple(row) for row in known]
        with pytest.raises(DbtBaseException, match="in a view is refused"):
            project.run_sql("create view {schema}.names as select * from information_schema.tables")
        project.run_sql("drop view {schema}.looked")

    def test_a_query_and_a_model_name_meta_columns(self, project: Any) -> None:
        query = "select id, _hoodie_record_key, _hoodie_partition_path from {schema}.orders order by id"
        found = [tuple(row) for row in project.run_sql(query, fetch="all")]
        assert found == [(1, "1", "dt=x"), (2, "2", "dt=y")]
        model = project.project_root / "models" / "changed.sql"
        model.write(
            "{{ config(materialized='table') }} select id, _hoodie_commit_time as changed_at from {{ ref('orders') }}"
        )
        try:
            run_dbt(["run", "-s", "changed"])
            run_dbt(["run", "-s", "changed", "--empty"])
            with pytest.raises(DbtBaseException, match="not in the same SELECT as a"):
                project.run_sql("select *, _hoodie_commit_time from {schema}.orders", fetch="all")
        finally:
            model.remove()
        assert len(self.rows(project)) == 2

    def test_statements_spark_may_run_are_left_to_it(self, project: Any) -> None:
        project.run_sql("alter table {schema}.orders set tblproperties ('owner.team' = 'data')")
        project.run_sql("analyze table {schema}.orders compute statistics; refresh table {schema}.orders")
        assert len(self.rows(project)) == 2


class TestAnotherCatalog:
    """A catalog of a database beside Spark's own has a schema and a table of the same names."""

    SETTINGS = (
        ("", "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"),
        (".url", "jdbc:derby:memory:other_catalog"),
        (".driver", "org.apache.derby.jdbc.EmbeddedDriver"),
        (".create", "true"),
    )

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"a.sql": "{{ config(materialized='incremental', unique_key='id') }} select 1 as id"}

    def test_statements_on_its_tables_leave_ours_alone(self, project: Any) -> None:
        run_dbt(["run"])
        schema = project.test_schema
        theirs = f"lake.{schema}.a"
        with project.adapter.connection_named("other"):
            handle = project.adapter.connections.get_thread_connection().handle
            with handle.job("set up") as session:
                for key, value in self.SETTINGS:
                    session.conf.set(f"spark.sql.catalog.lake{key}", value)
            run = project.adapter.execute
            run(f"create schema lake.{schema}")
            run(f"create table {theirs} (id int)")
            run(f"insert into {theirs} values (1), (2)")
            for statement in ("delete from {} where id = 1", "truncate table {}"):
                with pytest.raises(DbtBaseException, match="(?i)does not support (delete|truncate)s"):
                    run(statement.format(theirs))
            with pytest.raises(DbtBaseException, match="of another catalog; name one of spark_catalog"):
                run(f"call show_commits(table => '{theirs}')")
            assert run(f"select count(*) from {theirs}", fetch=True)[1].rows[0][0] == 2
            run(f"drop table {theirs}")
            run(f"insert into spark_catalog.{schema}.a values (7)")
            rows = run(f"select id from {schema}.a order by id", fetch=True)[1].rows
            assert [row[0] for row in rows] == [1, 7]

"""SQL statements that replace a table by rows that they read from it."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtBaseException
from hudi_engine import HudiTable
from hudi_engine.spark.jvm import plans

pytestmark = pytest.mark.sampled

USING = "using hudi tblproperties (primaryKey='id', type='TYPE')"
STATEMENTS = {
    "rebuilt": f"create or replace table NAME {USING} as select id, n + 1 as n, d from NAME",
    "rebuilt otherwise": "create or replace table NAME using hudi as select id, n + 1 as n, d from NAME",
    "overwritten": "insert overwrite NAME select id, n + 1 as n, d from NAME",
    "overwritten by partition": "insert overwrite NAME partition (d='a') select id, n + 1 as n from NAME where d = 'a'",
    "replaced": "insert into NAME replace where d = 'a' select id, n + 1 as n, d from NAME",
    "overwritten through a join": (
        "insert overwrite NAME select s.id, t.n + 1 as n, s.d from (select 1 as id, 'a' as d) s join NAME t on t.id = s.id"
    ),
}


@pytest.fixture
def meanwhile(project: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Name of a table to which another writer adds a row, whenever a statement's query has been analysed."""
    folder = project.project_root / "warehouse" / project.test_schema
    frame, others = plans.frame, []

    def overtaken(session: Any, plan: Any) -> Any:
        rows = frame(session, plan)
        if others:
            table = HudiTable.open(session, str(folder / others[-1]))
            table.upsert(session.sql("select 5 as id, 50 as n, 'a' as d"))
        return rows

    monkeypatch.setattr(plans, "frame", overtaken)
    return others


@pytest.mark.parametrize("kind", ["cow", "mor"])
class TestRowsThatAnotherWriterAddsMeanwhile:
    def rows(self, project: Any, name: str) -> list[tuple[Any, ...]]:
        found = project.run_sql(f"select id, n, d from {{schema}}.{name}", fetch="all")
        return sorted(tuple(row) for row in found)

    @pytest.mark.parametrize("form", STATEMENTS)
    def test_they_are_not_lost(self, project: Any, meanwhile: list[str], form: str, kind: str) -> None:
        name = f"{form.replace(' ', '_')}_{kind}"
        using = USING.replace("TYPE", kind)
        project.run_sql(
            f"create table {{schema}}.{name} {using} partitioned by (d) as select 1 as id, 1 as n, 'a' as d"
        )
        sql = STATEMENTS[form].replace("NAME", f"{{schema}}.{name}").replace("TYPE", kind)
        if form == "rebuilt":
            sql = sql.replace(" as select", " partitioned by (d) as select")
        meanwhile.append(name)
        with pytest.raises(DbtBaseException, match=r"another writer|WriteConflict|meanwhile"):
            project.run_sql(sql)
        assert self.rows(project, name) == [(1, 1, "a"), (5, 50, "a")]

        meanwhile.clear()
        project.run_sql(sql)
        assert self.rows(project, name)[0] == (1, 2, "a")


class TestRowsOfATableThatIsReadByAnotherName:
    @pytest.mark.parametrize(("other", "kind"), [("face", "mor"), ("view", "mor"), ("view", "cow")])
    def test_what_another_writer_adds_meanwhile_is_not_lost(
        self, project: Any, meanwhile: list[str], other: str, kind: str
    ) -> None:
        name, using = f"known_by_a_{other}_{kind}", USING.replace("TYPE", kind)
        project.run_sql(f"create table {{schema}}.{name} {using} as select 1 as id, 1 as n, 'a' as d")
        called = f"{{schema}}.{name}_rt" if other == "face" else f"{{schema}}.seen_{kind}"
        if other == "view":
            project.run_sql(f"create view {called} as select * from {{schema}}.{name}")
        meanwhile.append(name)
        for begin in (
            f"insert overwrite {{schema}}.{name}",
            f"create or replace table {{schema}}.{name} {using} as",
        ):
            with pytest.raises(DbtBaseException, match=r"another writer|WriteConflict|meanwhile"):
                project.run_sql(f"{begin} select id, n + 1 as n, d from {called}")
            found = project.run_sql(f"select id, n from {{schema}}.{name}", fetch="all")
            assert sorted(tuple(row) for row in found) == [(1, 1), (5, 50)]

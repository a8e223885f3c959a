"""Taking a run back that wrote by hooks and operations too, and what stops it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hudi_engine
import pytest
from dbt.tests.util import run_dbt
from hudi_engine.format.config.options import resolve_options
from hudi_engine.spark.catalog import TableName
from hudi_engine.table.inspect import commit_facts
from hudi_engine.table.state import TableState
from hudi_engine.table.table_services import TableServices
from hudi_engine.table.txn.swap import table_storage

from dbt.adapters.hudi.past_runs import UNFINISHED, PastRuns, PastTable
from dbt.adapters.hudi.shell.here import main
from tests.helpers.projects import where

pytestmark = pytest.mark.sampled

LATER = "{% if var('day') > 1 %}"
HOOKED = f"""
{{{{ config(materialized='incremental', unique_key='id',
    pre_hook="{LATER} delete from {{{{ this }}}} where id = 0 {{% endif %}}",
    post_hook=["{LATER} delete from {{{{ this }}}} where id = 9 {{% endif %}}",
               "{LATER} delete from {{{{ target.schema }}}}.other where id = 1 {{% endif %}}",
               "{LATER} truncate table {{{{ target.schema }}}}.emptied {{% endif %}}",
               "{LATER} create or replace table {{{{ target.schema }}}}.made using hudi as select 1 as id {{% endif %}}",
               "{LATER} delete from {{{{ target.schema }}}}.idle where id > 10 {{% endif %}}"]) }}}}
-- depends_on: {{{{ ref('other') }}}} {{{{ ref('emptied') }}}} {{{{ ref('idle') }}}}
select cast(id as int) as id, {{{{ var('day') }}}} as v from range(10) where {{{{ var('day') }}}} = 1 or id > 4
"""
ONCE = "{{ config(materialized='table', enabled=true) }} select cast(id as int) as id, 1 as v from range(3)"
MERGED = """
{{ config(materialized='incremental', unique_key='id') }} select cast(id as int) as id, {{ var('day') }} as v from range(3)"""


class Undoes:
    def run(self, day: int, *words: str) -> None:
        run_dbt(["run", "--vars", f"{{day: {day}}}", *words])

    def path(self, project: Any, name: str) -> str:
        return f"{project.project_root}/warehouse/{project.test_schema}/{name}"

    def rows(self, project: Any, *names: str) -> list[list[Any]]:
        found = []
        for name in names:
            read = hudi_engine.read(self.path(project, name), columns=["id", "v"]).to_arrow()
            found.append(sorted(map(tuple, map(dict.values, read.to_pylist()))))
        return found

    def undo(self, project: Any, *words: str) -> int:
        return main(["undo", *(words or ("--last",)), "--yes", *where(project), "--vars", "{day: 2}"])


class TestHooks(Undoes):
    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        return {"hooked.sql": HOOKED, "other.sql": ONCE, "emptied.sql": ONCE, "idle.sql": ONCE}

    def test_what_hooks_wrote_goes_back_with_the_run(self, project: Any, capsys: Any) -> None:
        self.run(1)
        before = self.rows(project, "hooked", "other", "emptied")
        self.run(2, "--select", "hooked")
        assert self.rows(project, "other", "emptied") == [[(0, 1), (2, 1)], []]
        facts = commit_facts(TableState.load(table_storage(self.path(project, "other"))), 1)[0]
        assert facts.extra["_dbt_node"] == "model.test.hooked"

        assert self.undo(project) == 0, capsys.readouterr().err
        assert self.rows(project, "hooked", "other", "emptied") == before
        assert not Path(self.path(project, "made")).exists()

    def test_a_statement_of_a_hook_that_changes_no_row_makes_no_commit(self, project: Any) -> None:
        assert len(commit_facts(TableState.load(table_storage(self.path(project, "idle"))))) == 1


class TestStopped(Undoes):
    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        return {f"{name}.sql": MERGED for name in ("a", "b", "c")}

    @pytest.mark.parametrize("broken", [".hoodie/hoodie.properties", "newest commit"])
    def test_a_table_that_cannot_be_read_stops_it_by_name(
        self, project: Any, capsys: Any, broken: str
    ) -> None:
        self.run(1, "--full-refresh")
        self.run(2)
        after, folder = self.rows(project, "a", "b", "c"), Path(self.path(project, "b"))
        place = folder / broken
        if broken == "newest commit":
            place = max(folder.glob(".hoodie/**/*.commit"), key=lambda each: each.name)
        good = place.read_bytes()
        place.write_bytes(b"garbage")
        assert self.undo(project) == 2
        assert f"{project.test_schema}.b cannot be read" in capsys.readouterr().err
        assert self.undo(project, "--last", "--select", "a", "b") == 2
        assert "b cannot be read" in capsys.readouterr().err
        assert self.undo(project, "--last", "--exclude", "b") == 0
        capsys.readouterr()
        assert main(["runs", *where(project), "--vars", "{day: 2}"]) == 0
        assert "b cannot be read" in capsys.readouterr().out
        place.write_bytes(good)
        now = self.rows(project, "a", "b", "c")
        assert now[1] == after[1] and now[0] != after[0] and now[2] != after[2]

    def test_a_cut_off_undo_stops_at_later_commits_until_it_is_given_up(
        self, project: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.run(1, "--full-refresh")
        before = self.rows(project, "a", "b", "c")
        self.run(2)
        restore, calls = PastRuns._restore, []

        def failing(self: Any, table: Any, target: str) -> None:
            calls.append(table.label)
            if len(calls) == 2:
                raise OSError("cut off")
            restore(self, table, target)

        with monkeypatch.context() as patch:
            patch.setattr(PastRuns, "_restore", failing)
            assert self.undo(project) == 2
        self.run(3)
        assert self.undo(project, "--last", "--exclude", "b") == 2
        assert "leave out --select and --exclude" in capsys.readouterr().err
        later = self.rows(project, "a", "b", "c")
        for words in (("--last",), ("--last", "--force")):
            assert self.undo(project, *words) == 2
            said = capsys.readouterr().err
            assert said.count("committed to since the undo began") == 2 and UNFINISHED in said
            assert calls[0] + ":" not in said
        assert self.rows(project, "a", "b", "c") == later

        note = Path(project.project_root, "warehouse", UNFINISHED)
        run = json.loads(note.read_text())["run"]
        note.unlink()
        assert self.undo(project) == 0
        assert self.undo(project, "--run", run) == 0, capsys.readouterr().err
        assert self.rows(project, "a", "b", "c") == before


class TestOtherNames(Undoes):
    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        return {"a.sql": MERGED}

    def test_a_renamed_table_goes_back_and_a_clone_has_none_of_its_originals_runs(
        self, project: Any, capsys: Any
    ) -> None:
        self.run(1)
        before = self.rows(project, "a")
        self.run(2)
        base = f"{project.project_root}/other/{project.test_schema}/a"
        TableServices(table_storage(self.path(project, "a")), resolve_options({})).clone(base)
        assert PastTable.load(TableName(project.test_schema, "a"), base).runs() == {}

        project.run_sql("alter table {schema}.a rename to {schema}.moved")
        assert self.undo(project) == 0, capsys.readouterr().err
        assert self.rows(project, "moved") == before

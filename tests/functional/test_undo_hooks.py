"""Taking a run back that wrote by hooks and operations too, and what stops it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hudi_engine
import pytest
from dbt.tests.util import run_dbt
from hudi_engine.table.inspect import commit_facts
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.swap import table_storage

from dbt.adapters.hudi.shell import main

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
        where = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
        return main(["undo", *(words or ("--last",)), "--yes", *where, "--vars", "{day: 2}"])


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

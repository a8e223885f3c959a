"""Runs that the tables know of, and taking one back: every materialization, another writer, a crash in the middle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import hudi_engine
import pytest
from dbt.tests.util import run_dbt, write_file
from hudi_engine import HudiTable
from hudi_engine.table.inspect import commit_facts
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.swap import table_storage
from pyspark.sql import SparkSession

from dbt.adapters.hudi.shell.here import main
from tests.helpers.hudi_rs import rows_by_hudi_rs
from tests.helpers.projects import SNAPSHOT_OF_PEOPLE, files, where

pytestmark = pytest.mark.slow

MODELS = {
    "replaced.sql": "{{ config(materialized='table') }} select id, name from {{ ref('people') }}",
    "merged.sql": """
        {{ config(materialized='incremental', unique_key='id') }} select id, name from {{ ref('people') }}
        where id < {{ var('day') * 10 }}""",
    "logged.sql": """
        {{ config(materialized='incremental', unique_key='id', table_type='mor') }} select id, name from {{ ref('people') }}""",
    "overwritten.sql": """
        {{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by='name') }}
        select {{ var('day') }} as day, id, name from {{ ref('people') }}""",
    "appended.sql": """
        {{ config(materialized='incremental', incremental_strategy='append') }} select {{ var('day') }} as day""",
    "consumer.sql": """
        {{ config(materialized='incremental', unique_key='id') }} select id, name from {{ hudi_changes(ref('merged')) }}""",
    "summed.py": """
def model(dbt, session):
    dbt.config(materialized="table")
    return dbt.ref("merged").groupBy("name").count()
""",
    "seen.sql": "{{ config(materialized='view') }} select count(*) as n from {{ ref('merged') }}",
    "made.sql": "{{ config(materialized='table', enabled=var('day') > 1) }} select 1 as id",
}
TABLES = ("people", "replaced", "merged", "logged", "overwritten", "appended", "consumer", "summed", "kept")
CRASH = """
import sys
import dbt.adapters.hudi.past_runs as past
from dbt.adapters.hudi.shell.here import main
from tests.helpers.fault import FaultInjectingStorage, FaultPlan

restore, opened, calls = past.PastRuns._restore, past.open_storage, []

def dying(self, table, target):
    calls.append(table.label)
    if len(calls) == 3:
        past.open_storage = lambda base: FaultInjectingStorage(opened(base), FaultPlan(5, "before"))
    restore(self, table, target)

past.PastRuns._restore = dying
sys.exit(main(sys.argv[1:]))
"""


class TestUndo:
    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        return MODELS

    @pytest.fixture(scope="class")
    def snapshots(self) -> Mapping[str, str]:
        return {"kept.sql": SNAPSHOT_OF_PEOPLE}

    @pytest.fixture(scope="class")
    def seeds(self) -> Mapping[str, str]:
        return {"people.csv": "id,name\n1,a\n2,b\n"}

    def build(self, project: Any, day: int, *words: str) -> None:
        run_dbt(["build", "--vars", f"{{day: {day}}}", *words])

    def rows(self, project: Any, tables: Sequence[str] = TABLES) -> dict[str, list[Any]]:
        found = {}
        for name in tables:
            read = hudi_engine.read(self.path(project, name)).to_arrow()
            names = sorted(read.column_names)
            found[name] = sorted(map(tuple, map(dict.values, read.select(names).to_pylist())), key=repr)
        return found

    def path(self, project: Any, name: str) -> str:
        return f"{project.project_root}/warehouse/{project.test_schema}/{name}"

    def options(self, project: Any, day: int) -> list[str]:
        return [*where(project), "--vars", f"{{day: {day}}}"]

    def listed(self, project: Any, capsys: Any) -> Any:
        capsys.readouterr()
        assert main(["runs", "--json", *self.options(project, 2)]) == 0
        return json.loads(capsys.readouterr().out)

    def test_a_run_of_all_materializations_is_taken_back(self, project: Any, capsys: Any) -> None:
        self.build(project, 1)
        before = self.rows(project)
        write_file("id,name\n2,c\n3,b\n11,z\n", project.project_root, "seeds", "people.csv")
        self.build(project, 2)
        after = self.rows(project)
        assert all(before[name] != after[name] for name in TABLES)
        (newest, first) = self.listed(project, capsys)
        assert (newest["tables"], first["tables"]) == (10, 9)
        assert newest["rows_inserted"] > 0 and newest["first_commit"] > first["first_commit"]

        spark = SparkSession.builder.getOrCreate()
        HudiTable.open(spark, self.path(project, "appended")).insert(spark.sql("select 7 as day"))
        undo = ["undo", "--last", "--yes", *self.options(project, 2)]
        assert main(undo) == 2
        said = capsys.readouterr().err
        assert "appended: 1 later commit of others would go too" in said and "--force" in said
        assert self.rows(project, ["merged"])["merged"] == after["merged"]

        # without a terminal nothing is asked and nothing is done
        assert main(["undo", "--last", "--force", *self.options(project, 2)]) == 2
        assert "nothing was changed; --yes" in capsys.readouterr().err

        died = subprocess.run(
            [sys.executable, "-c", CRASH, *undo, "--force"],
            cwd=project.project_root,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert died.returncode == 137, died.stdout + died.stderr
        now = self.rows(project)
        assert any(now[name] == after[name] for name in TABLES) and now != after
        assert main(["undo", "--run", first["run"], "--yes", *self.options(project, 2)]) == 2
        assert f"the undo of run {newest['run']} was cut off" in capsys.readouterr().err

        # what is half taken back stays so until the rest is agreed to
        root = Path(project.project_root, "warehouse")
        half = files(root)
        for words in ((), ("--force",)):
            assert main(["undo", "--last", *words, *self.options(project, 2)]) == 2
        assert "nothing was changed; --yes" in capsys.readouterr().err
        assert files(root) == half

        assert main([*undo, "--force"]) == 0, capsys.readouterr().err
        assert f"run {newest['run']} is undone" in capsys.readouterr().out
        assert self.rows(project) == before
        for name, columns in {
            "merged": ("id", "name"),
            "kept": ("id", "name"),
            "replaced": ("id", "name"),
        }.items():
            by_rust = rows_by_hudi_rs(self.path(project, name), columns)
            ours = hudi_engine.read(self.path(project, name), columns=columns).to_arrow()
            assert by_rust == sorted(map(tuple, map(dict.values, ours.to_pylist())))
        assert not Path(self.path(project, "made")).exists()
        assert [each["run"] for each in self.listed(project, capsys)] == [first["run"]]

        # models that take changes go on from their checkpoint of before
        self.build(project, 2)
        again = self.rows(project)
        assert {name: again[name] for name in TABLES if name != "kept"} == {
            name: after[name] for name in TABLES if name != "kept"
        }

    def test_only_selected_tables_go_back_and_notes_name_the_inputs(self, project: Any, capsys: Any) -> None:
        before = self.rows(project, ["merged", "replaced"])
        write_file("id,name\n2,d\n", project.project_root, "seeds", "people.csv")
        self.build(project, 2)
        after = self.rows(project, ["merged", "replaced"])
        state = TableState.load(table_storage(self.path(project, "merged")))
        extra = commit_facts(state, 1)[0].extra
        seed = TableState.load(table_storage(self.path(project, "people"))).timeline.completed_writes[-1]
        assert json.loads(extra["_dbt_inputs"]) == {f"{project.test_schema}.people": seed.requested_time}
        assert extra["_dbt_table"] == f"{project.test_schema}.merged" and len(extra["_dbt_checksum"]) == 64
        assert main(["undo", "--last", "--yes", "--select", "replaced", *self.options(project, 2)]) == 0
        assert self.rows(project, ["merged", "replaced"]) == {
            "merged": after["merged"],
            "replaced": before["replaced"],
        }

    def test_a_run_is_one_of_its_target_and_of_the_tables_that_are_selected(
        self, project: Any, capsys: Any, tmp_path: Path
    ) -> None:
        newest = self.listed(project, capsys)[0]["run"]
        profile = Path(project.profiles_dir, "profiles.yml").read_text(encoding="utf-8")
        (tmp_path / "profiles.yml").write_text(
            profile.replace(project.test_schema, "elsewhere"), encoding="utf-8"
        )
        other = ["--profiles-dir", str(tmp_path), "--project-dir", project.project_root, "--vars", "{day: 2}"]
        program = [sys.executable, "-m", "dbt.adapters.hudi.shell"]

        def said(*words: str) -> tuple[int, str]:
            done = subprocess.run(
                [*program, *words, *other], cwd=tmp_path, capture_output=True, text=True, check=False
            )
            return done.returncode, done.stdout + done.stderr

        before = self.rows(project, ["merged", "replaced"])
        code, text = said("undo", "--last", "--yes")
        assert code == 2 and "no table in the schemas of the target" in text, text
        code, text = said("runs", "--json", "--all-schemas")
        assert code == 0 and json.loads(text)[0]["schemas"] == project.test_schema, text
        assert self.rows(project, ["merged", "replaced"]) == before

        assert main(["undo", "--last", "--yes", "--select", "seen", *self.options(project, 2)]) == 2
        assert f"run {newest} has written no table of the nodes" in capsys.readouterr().err
        self.build(project, 2, "--select", "seen", "--write-json")
        assert main(["undo", "--last", "--yes", *self.options(project, 2)]) == 2
        assert "has written no table of this target; the newest one that has is" in capsys.readouterr().err
        assert self.rows(project, ["merged", "replaced"]) == before

    def test_a_table_that_the_run_rebuilt_with_another_key_cannot_go_back(
        self, project: Any, capsys: Any
    ) -> None:
        write_file(
            MODELS["merged.sql"].replace("'id'", "['id', 'name']"),
            project.project_root,
            "models",
            "merged.sql",
        )
        self.build(project, 2, "--full-refresh", "--select", "merged")
        assert main(["undo", "--last", "--yes", *self.options(project, 2)]) == 2
        said = capsys.readouterr()
        assert "has rebuilt it with another key" in said.err
        assert "not undone" in said.out and "dropped" not in said.out

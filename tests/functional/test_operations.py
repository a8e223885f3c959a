"""Operations and procedures of a table from dbt: looking, saving, going back, deleting partitions, repairing."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

MODEL = """
{{ config(materialized='incremental', unique_key=['id', 'day'], partition_by='day', archive={'min_commits': 2, 'max_commits': 3},
          clean={'retain_commits': 1}, post_hook="call create_savepoint(table => '{{ this }}', comments => 'before the mistake')") }}
select id, 'd' || id as day, unix_micros(current_timestamp()) as n from range(3)
"""


def operate(name: str, arguments: str, *, expect_pass: bool = True) -> str:
    """Run an operation on the table; gives what it printed."""
    _, output = run_dbt_and_capture(
        ["run-operation", name, "--args", f"{{table: orders, {arguments}}}"], expect_pass=expect_pass
    )
    return str(output)


def _said(output: str) -> list[str]:
    """Return the lines about a table, without their times."""
    lines = [line.partition("  ")[2] for line in output.splitlines()]
    return [line for line in lines if line.startswith("  ") or "orders" in line]


class TestOperations:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": MODEL}

    def rows(self, project: Any) -> list[Any]:
        return sorted(tuple(row) for row in project.run_sql("select id, n from {schema}.orders", fetch="all"))

    def test_look_save_restore_delete_and_repair(self, project: Any) -> None:
        run_dbt(["run"])
        before = self.rows(project)
        saved = project.run_sql("call show_savepoints(table => '{schema}.orders')", fetch="all")[0][0]
        assert saved in operate("hudi_savepoints", "")
        run_dbt(["run"])
        newest = project.run_sql("call show_commits(table => '{schema}.orders', limit => 1)", fetch="one")
        assert newest[2] == "commit" and newest[0] > saved and newest[7] == 3

        assert "UPSERT".lower() in operate("hudi_show_commits", "limit: 2").lower()
        assert "day=d1" in operate("hudi_show_files", "partition: day=d1")
        assert "day=d2" in operate("hudi_show_partitions", "")
        assert "file groups" in operate("hudi_stats", "count: true")
        assert "timeline and files agree" in operate("hudi_validate", "keys: true")
        assert "orders-report.html" in operate("hudi_report", "")
        operate("hudi_report", "output: target/orders.html, count: true")
        assert "latest-snapshot.csv" in operate("hudi_manifest", "")
        page = (Path(project.project_root) / "target" / "orders.html").read_text(encoding="utf-8")
        assert newest[0] in page and "day=d2" in page
        assert newest[0] in operate("hudi_call", "procedure: show_commits, limit: 1")
        told = project.run_sql("call help(cmd => 'run_clean')", fetch="one")[0]
        assert "table (required), skip_locking (true is refused)" in told
        assert "call show_fsview_latest(...)" in project.run_sql("call help()", fetch="one")[0]
        assert "0 repairs would be made" in operate("hudi_repair", "")
        assert "0 repairs made" in operate("hudi_repair", "kinds: duplicate_keys, dry_run: false")

        operate("hudi_delete_savepoint", f"instant: '{newest[0]}'")
        assert "would be undone" in operate("hudi_rollback", f"instant: '{newest[0]}', dry_run: true")
        assert "files would be deleted" in operate("hudi_clean", "retain_commits: 1, dry_run: true")
        assert self.rows(project) != before
        told = operate("hudi_restore", f"instant: '{saved}', dry_run: true")
        assert newest[0] in told and self.rows(project) != before
        assert "taken back 1, " in operate("hudi_restore", "instant: before the mistake")
        assert self.rows(project) == before

        assert "1 partitions would be deleted" in operate(
            "hudi_delete_partitions", "partitions: [day=d1], dry_run: true"
        )
        operate("hudi_delete_partitions", "partitions: [day=d1]")
        assert [row[0] for row in self.rows(project)] == [0, 2]
        text = "partitions: 'day=d0, day=d2'"
        assert "2 partitions would be deleted" in operate("hudi_delete_partitions", f"{text}, dry_run: true")

    def test_illegal_arguments_are_refused_by_name(self, project: Any) -> None:
        run_dbt(["run"])
        assert "give a list of partition paths" in operate(
            "hudi_delete_partitions", "partitions: ','", expect_pass=False
        )
        assert "legal values: partition_metadata" in operate("hudi_repair", "kinds: [all]", expect_pass=False)
        assert "no completed write" in operate(
            "hudi_restore", "instant: '20260101000000000'", expect_pass=False
        )

    def test_a_switch_may_be_text(self, project: Any) -> None:
        run_dbt(["run"])
        assert "not counted" not in operate("hudi_stats", "count: 'True'")
        for name, switch in (("hudi_stats", "count"), ("hudi_validate", "keys"), ("hudi_report", "count")):
            plain, as_text = (operate(name, given) for given in (f"{switch}: false", f"{switch}: 'false'"))
            assert _said(as_text) == _said(plain), name
            assert f"{switch} is 'maybe'; legal values: true, false" in operate(
                name, f"{switch}: maybe", expect_pass=False
            )
        copies = "clone: {schema}.copied, copy: 'false'".replace("{schema}", project.test_schema)
        operate("hudi_clone", f"{copies}, replace: 'true'")
        assert "replace is 'maybe'; legal values: true, false" in operate(
            "hudi_clone", f"{copies}, replace: maybe", expect_pass=False
        )
        project.run_sql("drop table {schema}.copied")

    def test_unknown_argument_names_the_legal_ones(self, project: Any) -> None:
        told = operate("hudi_clone", "clone: copied, coppy: true", expect_pass=False)
        assert (
            "hudi_clone has no argument 'coppy'; did you mean 'copy'? its arguments: table, clone, at, replace, copy"
            in told
        )
        told = operate("hudi_clone", "", expect_pass=False)
        assert "hudi_clone needs clone; its arguments: table, clone, at, replace, copy" in told
        told = operate("hudi_checkpoint", "sett: 1", expect_pass=False)
        assert (
            "hudi_checkpoint has no argument 'sett'; did you mean 'set'? its arguments: table, input, set, reset"
            in told
        )

    def test_validation_failure_is_a_runtime_error(self, project: Any) -> None:
        run_dbt(["run", "--full-refresh"])
        lost = project.run_sql("select _metadata.file_path from {schema}.orders where id = 0", fetch="one")[0]
        Path(unquote(urlsplit(lost).path)).unlink()
        told = operate("hudi_validate", "", expect_pass=False)
        assert "validation failed" in told and "do not agree" in told
        assert Path(lost).name.partition("_")[0] in told, "the file that is not there"
        assert "Runtime Error" in told and "Compilation Error" not in told

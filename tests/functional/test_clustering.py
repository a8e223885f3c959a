"""Clustering from dbt: by a model's config, as hook, as operation, as procedure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

MODEL = """
{{ config(materialized='incremental', unique_key='id', %s) }}
select id, cast(id %% 7 as int) as day, pmod(hash(id), 100) as amount
from range({{ var('first', 0) }}, {{ var('first', 0) + 40 }})
"""
BY = "['day', 'amount']"
SPLIT = "hudi_options={'hoodie.parquet.small.file.limit': 0}"


class TestClustering:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "inline.sql": MODEL % f"cluster_by={BY}, clustering={{'max_commits': 2}}, {SPLIT}",
            "hooked.sql": MODEL
            % f"meta={{'hudi': {{'cluster_by': {BY}}}}}, post_hook=\"{{{{ hudi_cluster(this) }}}}\", {SPLIT}",
        }

    def files(self, project: Any, name: str) -> list[list[Any]]:
        """Return the first sort column of the live files of a table."""
        paths = project.run_sql(f"select distinct input_file_name() from {{schema}}.{name}", fetch="all")
        names = ["day", "amount"]
        tables = [pq.read_table(Path(row[0].removeprefix("file://")), columns=names) for row in paths]
        return [[tuple(each.values()) for each in table.to_pylist()] for table in tables]

    def test_models_are_clustered_and_say_so(self, project: Any) -> None:
        run_dbt(["run"])
        (loaded,) = self.files(project, "inline")
        assert loaded == sorted(loaded), "a first load is in order"
        run_dbt(["run", "--vars", "{first: 100}"])
        assert len(self.files(project, "inline")) == 1
        (hooked,) = self.files(project, "hooked")
        assert hooked == sorted(hooked) and len(hooked) == 80
        _, output = run_dbt_and_capture(
            ["run-operation", "hudi_cluster", "--args", "{table: hooked, op: show}"]
        )
        assert output.count("  COMPLETED  ") == 2
        table = "{table: hooked, columns: [amount], strategy: hilbert"
        _, output = run_dbt_and_capture(
            ["run-operation", "hudi_cluster", "--args", f"{table}, dry_run: true}}"]
        )
        assert "file groups that would be rewritten: 1" in output
        wrong = f"{table}, partitions: 'day=2027-01-01'}}"
        asked = ["run-operation", "hudi_cluster", "--args", wrong]
        _, output = run_dbt_and_capture(asked, expect_pass=False)
        assert "table 'hooked' has no partitions; leave partitions out" in output
        _, output = run_dbt_and_capture(["run-operation", "hudi_cluster", "--args", f"{table}}}"])
        assert "state completed, file groups 1, rows 80" in output
        rows = project.run_sql("call show_clustering(table => '{schema}.hooked')", fetch="all")
        # Spark's schema is default, where no such table is
        assert project.run_sql("call show_clustering(table => 'hooked')", fetch="all") == rows
        assert [row[2] for row in rows] == ["COMPLETED"] * 3
        rows = project.run_sql("call run_clustering(table => '{schema}.hooked', order => 'id')", fetch="all")
        assert [row[2] for row in rows] == ["COMPLETED"]
        assert project.run_sql("select count(*) from {schema}.hooked", fetch="one")[0] == 80

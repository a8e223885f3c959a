"""Options of profile, project, folder and model, and what a run's commits say of where they come from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.storage import open_storage
from hudi_engine.table.state import TableState

from dbt.adapters.hudi.spark import memory

SHA = "0123456789abcdef0123456789abcdef01234567"
MODEL = """
{{ config(materialized='incremental', unique_key='id', options={'hoodie.parquet.page.size': '2000'}) }}
select id, id as v from range(10)
"""


class TestLevels:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any], tmp_path_factory: Any) -> dict[str, Any]:
        folder = str(tmp_path_factory.mktemp("metrics"))
        defaults = {
            "hoodie.metrics.on": True,
            "hoodie.engine.metrics.textfile.dir": folder,
            "hoodie.write.commit.callback.http.api.key": "hush",
            "hoodie.parquet.page.size": 5000,
        }
        return {**dbt_profile_target, "options": defaults}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        options = {"hoodie.parquet.page.size": "3000", "hoodie.metrics.reporter.metricsname.prefix": "ours"}
        return {"models": {"test": {"+options": options}}}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "kept.sql": MODEL,
            "posting.sql": "{{ config(materialized='table', options={'hoodie.write.commit.callback.http.url': 'http://h/'}) }} select 1 as id",
        }

    def test_options_are_put_together_and_commits_say_where_they_come_from(
        self, project: Any, dbt_profile_target: dict[str, Any]
    ) -> None:
        (Path(project.project_root) / ".git").mkdir()
        (Path(project.project_root) / ".git/HEAD").write_text(f"{SHA}\n")
        (result,), logged = run_dbt_and_capture(["--debug", "run", "--select", "kept"])
        (again,) = run_dbt(["run", "--select", "kept"])

        (options,) = {
            line.partition("is written with options ")[2]
            for line in logged.splitlines()
            if "kept is written with options " in line
        }
        assert "'hoodie.parquet.page.size': '2000'" in options and "'hoodie.metrics.on': 'true'" in options
        assert "'hoodie.metrics.reporter.metricsname.prefix': 'ours'" in options and "hush" not in options

        assert result.node.config.get("options") == {
            "hoodie.parquet.page.size": "2000",
            "hoodie.metrics.reporter.metricsname.prefix": "ours",
        }
        folder = Path(dbt_profile_target["options"]["hoodie.engine.metrics.textfile.dir"])
        assert "\nours_commit_totalUpdateRecordsWritten 10\n" in (folder / "ours.prom").read_text()
        table = open_storage(str(Path(project.project_root) / "warehouse" / project.test_schema / "kept"))
        timeline = TableState.load(table).timeline
        for write in timeline.completed_writes:
            extra = timeline.commit_metadata(write).extra_metadata
            assert (extra["_dbt_node"], extra["_dbt_git_sha"]) == ("model.test.kept", SHA)
            assert len(extra["_dbt_invocation_id"]) == 36 and "hush" not in json.dumps(extra)
        response = again.adapter_response
        assert response["rows_in"] == 10 and response["rows_shuffled"] == 0
        assert response["bytes_rewritten"] > 0 and response["seconds"]["write"] >= 0

    def test_a_model_cannot_choose_where_a_callback_goes(self, project: Any) -> None:
        with pytest.raises(DbtRuntimeError, match="only options of the profile may"):
            run_dbt(["run", "--select", "posting"])

    def test_debug_prints_what_tables_are_built_with(self, project: Any, capsys: Any) -> None:
        run_dbt(["debug"])
        said = capsys.readouterr().out
        for text in ("engine: hudi_engine", "spark: PySpark", "java: ", "master: local[2]", "catalog: "):
            assert text in said, text
        assert "hoodie.parquet.page.size" in said and "hush" not in said

    def test_debug_warns_where_the_machine_has_less_memory_than_a_run_may_take(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(memory, "machine_bytes", lambda: memory.GIB)
        _, logged = run_dbt_and_capture(["debug"])
        assert "Spark may take more memory than the 1.0 GiB there is" in logged

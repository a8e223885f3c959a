"""Runs dbt in this process, so that all runs of the demo share one Spark."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner


class DbtFailed(SystemExit):
    """A dbt command did not succeed; the message says which node and why."""


class Project:
    """A dbt project.

    Args:
        folder: Folder of dbt_project.yml and profiles.yml.
        variables: Variables of every command.
        show: Show what dbt prints.
    """

    def __init__(self, folder: Path, variables: Mapping[str, object], *, show: bool) -> None:
        self._folder = folder
        self._variables = dict(variables)
        self._show = show
        self._runner = dbtRunner()

    def clean(self, folders: Sequence[Path]) -> None:
        """Remove what an earlier run left."""
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)

    def dbt(self, *command: str, variables: Mapping[str, object] | None = None) -> dict[str, dict[str, Any]]:
        """Run a dbt command.

        Returns:
            The adapter response of each node, in the order they ran.

        Raises:
            DbtFailed: A node failed.
        """
        results = self._invoke(command, variables)
        failed = [result for result in results if str(result.status) not in ("success", "pass")]
        if failed:
            lines = [f"{result.node.name}: {result.status}: {result.message}" for result in failed]
            raise DbtFailed("\n".join([f"dbt {' '.join(command)} failed", *lines]))
        return {result.node.name: dict(result.adapter_response or {}) for result in results}

    def test(self) -> dict[str, bool]:
        """Run the tests; gives for each whether it passed."""
        return {result.node.name: str(result.status) == "pass" for result in self._invoke(("test",), None)}

    def hudi_tables(self) -> list[str]:
        """Give the names of the tables that dbt built, from dbt's own manifest."""
        manifest = json.loads((self._folder / "target" / "manifest.json").read_text(encoding="utf-8"))
        nodes = manifest["nodes"].values()
        built = ("table", "incremental", "seed")
        return sorted(node["alias"] for node in nodes if node["config"].get("materialized") in built)

    def spark(self) -> Any:
        """Give a Spark session in which the tables have their names."""
        from pyspark.sql import SparkSession

        session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
        session.conf.set("spark.sql.session.timeZone", "UTC")
        return session

    def _invoke(self, command: Sequence[str], variables: Mapping[str, object] | None) -> list[Any]:
        places = ["--project-dir", str(self._folder), "--profiles-dir", str(self._folder)]
        quiet = [] if self._show else ["--log-level", "none"]
        given = json.dumps({**self._variables, **(variables or {})})
        done = self._runner.invoke([*quiet, *command, *places, "--vars", given])
        if done.exception is not None:
            sys.exit(f"dbt {' '.join(command)}: {done.exception}")
        return list(getattr(done.result, "results", None) or [])

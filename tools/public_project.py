"""Runs a public dbt project as it is on dbt-hudi and prints what passed: no file of it is changed, nothing of it is kept here.

    python3 dev.py run python -m tools.public_project FOLDER [--project SUBFOLDER] [--vars YAML] [--schema NAME]
        [--steps STEP ...] [--package NAME=FOLDER ...]

The folder is copied, so that packages, target and warehouse lie beside the copy. The profile is named as the project asks,
with type hudi and nothing else. ``seed``, ``run`` and ``test`` are counted, each node once. Packages come by ``dbt deps``, or
from folders that are named, where dbt's hub cannot be reached.
"""

from __future__ import annotations

import argparse
import collections
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from dbt.cli.main import dbtRunner

_STEPS = ("seed", "run", "snapshot", "test")


def main() -> int:
    """Run the project; 0 when every node passed."""
    parser = argparse.ArgumentParser(prog="public_project", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the project, or the repository that it lies in")
    parser.add_argument("--project", default=".", help="folder of dbt_project.yml in it")
    parser.add_argument("--vars", default="{}", help="variables for dbt")
    parser.add_argument(
        "--schema", default="public_project", help="schema of the profile, where a project counts on one"
    )
    parser.add_argument("--steps", nargs="*", default=_STEPS, help="commands of dbt, in their order")
    parser.add_argument("--exclude", nargs="*", default=[], help="nodes to leave out, as dbt selects them")
    parser.add_argument(
        "--package",
        nargs="*",
        default=[],
        help="packages and their folders, as NAME=FOLDER, instead of `dbt deps`",
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(arguments.folder, copy, ignore=shutil.ignore_patterns(".git"))
        project = copy / arguments.project
        profiles = _write_profile(project, Path(folder), arguments.schema)
        for each in arguments.package:
            name, _, source = each.partition("=")
            shutil.copytree(
                source,
                project / "dbt_packages" / name,
                # the project of its tests; a folder of macros may be called so too
                ignore=lambda inside, names, top=source: [
                    each for each in names if inside == top and each.startswith((".git", "integration_test"))
                ],
            )
        common = ["--project-dir", str(project), "--profiles-dir", str(profiles)]
        return _run(project, common, arguments)


def _write_profile(project: Path, folder: Path, schema: str) -> Path:
    """Write a profile of the name that the project asks for, and return its folder."""
    name = yaml.safe_load((project / "dbt_project.yml").read_text())["profile"]
    target = {
        "type": "hudi",
        "schema": schema,
        "location_root": str(folder / "warehouse"),
        "threads": 2,
        "spark_conf": {
            "spark.sql.shuffle.partitions": "1",
            "spark.ui.enabled": "false",
            # a query of many joined views keeps a broadcast of 8 MB for each; in 1 GB Java collects garbage half the time
            "spark.driver.memory": "2g",
        },
    }
    profiles = folder / "profiles"
    profiles.mkdir()
    (profiles / "profiles.yml").write_text(
        yaml.safe_dump({name: {"target": "dev", "outputs": {"dev": target}}})
    )
    return profiles


def _run(project: Path, common: list[str], arguments: argparse.Namespace) -> int:
    runner = dbtRunner()
    asks = (project / "packages.yml").exists() or (project / "dependencies.yml").exists()
    if asks and not arguments.package:
        runner.invoke(["deps", *common])
    counts: collections.Counter[str] = collections.Counter()
    failed: list[str] = []
    for step in arguments.steps:
        exclude = ["--exclude", *arguments.exclude] if arguments.exclude else []
        done = runner.invoke([step, *common, "--vars", arguments.vars, *exclude])
        results: Any = getattr(done.result, "results", None)
        if results is None:
            print(f"{step}: {done.exception or 'nothing ran'}", file=sys.stderr)
            return 2
        for each in results:
            counts[f"{step} {each.status}"] += 1
            if str(each.status) in ("error", "fail", "runtime error"):
                said = " ".join(str(each.message).split())
                failed.append(f"{step} {each.node.name}: {said[:300]}")
    print("\n--- failed ---", *failed, sep="\n")
    print("--- figures ---", *(f"{name}: {count}" for name, count in sorted(counts.items())), sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Packages of dbt's hub run as they are, from checkouts below the folder that ``DBT_HUDI_PACKAGES`` names.

Each checkout is a folder of its repository's name; a package whose checkout is not there is skipped by name. What does not
pass is listed with the package: it fails on Spark, or asks which adapter it runs on.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECKOUTS = Path(os.environ.get("DBT_HUDI_PACKAGES") or ROOT / ".cache" / "packages")
MOST_SECONDS = 2400
"""For one package: a query of the largest joins hundreds of views."""
FAILED = re.compile(r"^(?:seed|run|snapshot|test|build) (\w+): ", re.MULTILINE)
FIGURE = re.compile(r"^\w+ (success|pass): (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Package:
    """One package, and how it is run.

    Args:
        checkout: Folder of its repository.
        name: Its name in ``dbt_packages``.
        project: Folder of the project that is run.
        needs: Folders of other packages by their names.
        fails: Pattern of the nodes that do not pass.
        passes: How many nodes pass at least.
    """

    checkout: str
    name: str
    project: str = "integration_tests"
    needs: tuple[tuple[str, str], ...] = (("dbt_utils", "dbt-utils"),)
    more: tuple[str, ...] = ()
    fails: str = "nothing"
    passes: int = 20


PACKAGES = [
    Package(
        "dbt_artifacts",
        "dbt_artifacts",
        "integration_test_project",
        (),
        ("--steps", "build", "build", "--exclude", "microbatch"),
        passes=60,
    ),
    Package(
        "dbt-expectations",
        "dbt_expectations",
        needs=(("dbt_date", "dbt-date"), ("dbt_utils", "dbt-utils")),
        fails=r".*_match_regex_.*",
        passes=150,
    ),
    Package(
        "dbt-audit-helper",
        "audit_helper",
        fails=r"unit_.*|(compare_(and_)?classify|quick_are_queries_identical).*",
        passes=80,
    ),
    Package(
        "dbt-codegen",
        "codegen",
        fails=r"test_generate_.*|model_from_source|model_without_import_ctes",
        passes=27,
    ),
    Package(
        "dbt-project-evaluator",
        "dbt_project_evaluator",
        needs=(
            ("dbt_utils", "dbt-utils"),
            ("exclude_package", "dbt-project-evaluator/integration_tests/exclude_package"),
        ),
        more=("--vars", "{max_depth_dag: 9}"),
        fails=r"equality_fct_(documentation|test)_coverage",
        passes=150,
    ),
]


def run(folder: Path, package: Package, needs: dict[str, Path]) -> str:
    """Run a project with the tool, and return its lists of failed nodes and figures."""
    arguments = [f"{name}={place}" for name, place in needs.items()]
    environment = {
        "TEST_ENV_VAR_NUMBER": "3",
        "TEST_ENV_VAR_EMPTY": "",
        "TEST_ENV_VAR_WITH_QUOTE": "Triple's",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tools.public_project", str(folder), "--project", package.project]
        + [*package.more, "--package", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        # within the limit of the test, which would end the run of the other packages and leave this process
        timeout=MOST_SECONDS,
    )
    assert "--- figures ---" in done.stdout, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout.partition("--- failed ---")[2]


def check(said: str, fails: str, passes: int) -> None:
    failed = FAILED.findall(said.partition("--- figures ---")[0])
    assert [each for each in failed if not re.fullmatch(fails, each)] == [], said
    assert sum(int(number) for _, number in FIGURE.findall(said)) >= passes, said


@pytest.mark.long
@pytest.mark.parametrize("package", PACKAGES, ids=[each.name for each in PACKAGES])
def test_a_package_runs_as_it_is(package: Package) -> None:
    places = {package.name: CHECKOUTS / package.checkout}
    places |= {name: CHECKOUTS / folder for name, folder in package.needs}
    missing = [str(each) for each in places.values() if not each.is_dir()]
    if missing:
        pytest.skip(f"{package.name}: no checkout at {', '.join(missing)}; set DBT_HUDI_PACKAGES")
    said = run(CHECKOUTS / package.checkout, package, places)
    check(said, package.fails, package.passes)


OBSERVED = {
    "dbt_project.yml": "name: observed\nprofile: observed\nflags: {send_anonymous_usage_stats: false}\n",
    "models/daily.sql": """
        {{ config(materialized='incremental', unique_key='id') }}
        select id, timestampadd(DAY, -id, current_timestamp()) as at, 10 * id as amount from range(1, 20)
    """,
    "models/daily.yml": """
        models:
          - name: daily
            config: {elementary: {timestamp_column: at}}
            data_tests: [elementary.volume_anomalies, elementary.schema_changes]
            columns: [{name: id, data_tests: [unique]}]
    """,
}


@pytest.mark.long
def test_elementary_observes_a_project_twice(tmp_path: Path) -> None:
    places = {"elementary": CHECKOUTS / "dbt-data-reliability", "dbt_utils": CHECKOUTS / "dbt-utils"}
    missing = [str(each) for each in places.values() if not each.is_dir()]
    if missing:
        pytest.skip(f"elementary: no checkout at {', '.join(missing)}; set DBT_HUDI_PACKAGES")
    for name, text in OBSERVED.items():
        path = tmp_path / "observed" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    package = Package("", "elementary", ".", more=("--steps", "run", "test", "run", "test"))
    check(run(tmp_path / "observed", package, places), "nothing", 60)

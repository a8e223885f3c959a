"""Writes ``docs/conformance.md``: which cases of dbt's adapter suite pass, fail, or do not apply.

A plugin of pytest: ``pytest -p tests.conformance.card --card docs/conformance.md tests/functional tests/conformance``.
A test counts for every class of the suite that it inherits its method from. With ``--card-outcomes`` the outcomes are kept in a
file, and the page is made of those of all runs that keep theirs there, so that the suite may run in pieces. ``--on hive,mor`` runs
the suite on another catalog and table type, ``--on hive,mor,8`` with all tables of a version; such a run, and one on another
dbt-core, is a line of the page.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import dbt.tests.adapter as suite
import pytest
from packaging.version import Version

PROJECTS = "## Public projects"
OTHERS = "## The same suite on other catalogs, table types and versions"
_HEAD = "| catalog | table type | dbt-core | pyspark | cases passed | not passed |\n|---|---|---|---|---|---|"
_VARIABLES = ("DBT_HUDI_TEST_CATALOG", "DBT_HUDI_TEST_TABLE_TYPE")
_VERSION = "DBT_HUDI_TEST_TABLE_VERSION"
_USUAL = ("directory", "cow")
_NEWER_DBT = Version(version("dbt-core")) >= Version("1.12")
NOT_APPLICABLE = {
    "BaseCachingTest": "parent of other classes, without models of its own",
    "BaseConstraintsColumnsEqual": "parent of other classes, without models of its own",
    "BaseContractSqlHeader": "parent of other classes, without models of its own",
    "BaseArrayUtils": "parent of other classes, without models of its own",
    "BaseUtils": "parent of other classes, without models of its own",
    "BaseDataTypeMacro": "parent of other classes, without models of its own",
    "BaseCurrentTimestamp": "parent of other classes, without models of its own",
    "UDAFBase": "parent of other classes, without models of its own",
    "BaseCurrentTimestampAware": "either this or BaseCurrentTimestampNaive",
    "PythonUDFSupported": "either this or PythonUDFNotSupported: Spark SQL keeps no Python function",
    "PythonUDFDefaultArgSupport": "Spark SQL keeps no Python function",
    "PythonUDFVolatilitySupport": "Spark SQL keeps no Python function",
    "PythonUDFWithPackagesSupported": "Spark SQL keeps no Python function",
    "BasicPythonUDAF": "Spark SQL keeps no Python function",
    "PythonUDAFDefaultArgSupport": "Spark SQL keeps no Python function",
    "BasicSQLUDAF": "a SQL function of Spark is no aggregate",
    "BaseIncrementalGrants": "open-source Spark has no GRANT",
    "BaseInvalidGrants": "open-source Spark has no GRANT",
    "BaseModelGrants": "open-source Spark has no GRANT",
    "BaseSeedGrants": "open-source Spark has no GRANT",
    "BaseSnapshotGrants": "open-source Spark has no GRANT",
}
if not _NEWER_DBT:
    NOT_APPLICABLE["BaseTestEmptySeedFlag"] = "`dbt seed --empty` came with dbt-core 1.12"
NOT_APPLICABLE_PREFIXES = {
    "MaterializedView": "a Spark session has no materialized views",
    "JS": "Spark has no JavaScript functions",
    "BasicJS": "Spark has no JavaScript functions",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--card", help="file that the card is written to")
    parser.addoption("--card-outcomes", help="file that keeps the outcomes of several runs")
    parser.addoption(
        "--on", help="catalog, table type and perhaps table version to run on, such as hive,mor,8"
    )


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Choose catalog and table type before the module is read that asks for them; workers inherit them."""
    chosen = getattr(early_config.known_args_namespace, "on", None)
    if chosen:
        given = chosen.split(",")
        os.environ.update(zip((*_VARIABLES, _VERSION)[: len(given)], given, strict=True))


def _combination() -> tuple[str, str]:
    catalog, table_type = (
        os.environ.get(name, usual) for name, usual in zip(_VARIABLES, _USUAL, strict=True)
    )
    only = os.environ.get(_VERSION)
    return catalog, table_type if only is None else f"{table_type}, version {only}"


def pytest_configure(config: pytest.Config) -> None:
    # with xdist, the reports of all workers come together in the first process
    if config.getoption("--card") and not hasattr(config, "workerinput"):
        kept = config.getoption("--card-outcomes")
        card = Card(Path(config.getoption("--card")), None if kept is None else Path(kept))
        config.pluginmanager.register(card, "conformance-card")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for name in suite_classes(item):
            item.user_properties.append(("suite", name))
    if config.getoption("--card"):
        # the project's own tests have their tier
        own = [item for item in items if not item.user_properties]
        config.hook.pytest_deselected(items=own)
        items[:] = [item for item in items if item.user_properties]


def suite_classes(item: pytest.Item) -> Iterator[str]:
    """Name the classes of the suite whose case an item is."""
    case = getattr(item, "originalname", item.name)
    for kind in inspect.getmro(getattr(item, "cls", None) or object):
        if kind.__module__.startswith(suite.__name__) and hasattr(kind, case):
            yield f"{kind.__module__.removeprefix(suite.__name__ + '.')}.{kind.__name__}"


def classes_of_suite() -> Iterator[str]:
    """Name every class of the suite that has cases and is meant to be inherited from."""
    root = Path(next(iter(suite.__path__)))
    for file in sorted(root.rglob("*.py")):
        module = ".".join((suite.__name__, *file.relative_to(root).with_suffix("").parts))
        try:
            loaded = importlib.import_module(module)
        except ImportError:
            continue
        for name, kind in inspect.getmembers(loaded, inspect.isclass):
            cases = [case for case in dir(kind) if case.startswith("test_") and callable(getattr(kind, case))]
            if kind.__module__ == module and cases and not name.startswith("Test"):
                yield f"{module.removeprefix(suite.__name__ + '.')}.{name}"


class Card:
    """Collects the outcomes of a run and writes the page.

    Args:
        path: The page.
        kept: Outcomes of other runs; None for this run alone.
    """

    def __init__(self, path: Path, kept: Path | None = None) -> None:
        self._path = path
        self._kept = kept
        known = kept is not None and kept.exists()
        self._outcomes: dict[str, dict[str, str]] = json.loads(kept.read_text()) if kept and known else {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.outcome == "passed":
            return
        for what, name in report.user_properties:
            if what == "suite":
                self._outcomes.setdefault(str(name), {})[report.nodeid] = report.outcome

    def pytest_sessionfinish(self) -> None:
        if self._kept is not None:
            self._kept.write_text(json.dumps(self._outcomes))
        page = self._page() if _combination() == _USUAL and not _NEWER_DBT else self._with_line()
        self._path.write_text(page, encoding="utf-8")

    def _with_line(self) -> str:
        """Return the page with a line for this run, which is not on the usual combination."""
        states = [(name, *self._state(name)) for name in sorted(set(classes_of_suite()))]
        cases = {
            wanted: len(
                {
                    node
                    for name, *_ in states
                    for node, was in self._outcomes.get(name, {}).items()
                    if was == wanted
                }
            )
            for wanted in ("passed", "failed")
        }
        left = "; ".join(
            f"{name}: {why or state}" for name, state, why in states if state in ("failed", "not run")
        )
        key = f"| {' | '.join((*_combination(), version('dbt-core'), version('pyspark')))} |"
        line = f"{key} {cases['passed']} of {sum(cases.values())} | {left} |"
        page = self._path.read_text(encoding="utf-8")
        before, heading, rest = page.partition(OTHERS)
        if not heading:
            before, projects, rest = page.partition(PROJECTS)
            return f"{before}{OTHERS}\n\n{_HEAD}\n{line}\n\n{projects}{rest}"
        table, projects, rest = rest.partition(PROJECTS)
        lines = sorted(
            [
                *(
                    each
                    for each in table.split("\n")
                    if each.startswith("| ") and not each.startswith((key, _HEAD[:9]))
                ),
                line,
            ]
        )
        told = "\n".join([heading, "", _HEAD, *lines, "", ""])
        return f"{before}{told}{projects}{rest}"

    def _page(self) -> str:
        rows, counts = [], {"passed": 0, "failed": 0, "not applicable": 0, "not run": 0}
        cases = {"passed": set[str](), "failed": set[str]()}
        for name in sorted(set(classes_of_suite())):
            state, why = self._state(name)
            counts[state] += 1
            for nodeid, outcome in self._outcomes.get(name, {}).items():
                if outcome in cases:
                    cases[outcome].add(nodeid)
            module, _, short = name.rpartition(".")
            rows.append(f"| {module} | {short} | {state} | {why} |")
        versions = ", ".join(
            f"{package} {version(package)}" for package in ("dbt-tests-adapter", "dbt-core", "pyspark")
        )
        good, bad = len(cases["passed"]), len(cases["failed"])
        applicable = sum(counts.values()) - counts["not applicable"]
        return "\n".join(
            [
                "# dbt's adapter test suite",
                "",
                f"Written by `python3 dev.py test conformance` ({versions}; catalog `{_USUAL[0]}`, table type `{_USUAL[1]}`, table "
                "versions 6 and 9 in turn).",
                "",
                f"**{good} of {good + bad} cases pass**, of {counts['passed']} of {applicable} classes that apply; "
                f"{counts['failed']} classes failed, {counts['not run']} were not run, {counts['not applicable']} do not apply, "
                "with the reason below. Where the suite's SQL or expected text is another database's it is said in Spark's words; "
                "what is asserted is the suite's own.",
                "",
                "| module | class | result | note |",
                "|---|---|---|---|",
                *rows,
                "",
                *self._kept_parts(),
            ]
        )

    def _kept_parts(self) -> list[str]:
        """The page's parts that other runs write, and that on public projects, which another program's figures go into by hand."""
        page = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
        for first in (OTHERS, PROJECTS):
            _, heading, rest = page.partition(first)
            if heading:
                return [heading + rest.rstrip(), ""]
        return []

    def _state(self, name: str) -> tuple[str, str]:
        outcomes = self._outcomes.get(name, {})
        failed = [nodeid.rpartition("::")[2] for nodeid, outcome in outcomes.items() if outcome == "failed"]
        if failed:
            return "failed", ", ".join(failed)
        short = name.rpartition(".")[2]
        reason = NOT_APPLICABLE.get(short) or next(
            (why for prefix, why in NOT_APPLICABLE_PREFIXES.items() if short.startswith(prefix)), ""
        )
        if reason:
            return "not applicable", reason
        passed = sum(outcome == "passed" for outcome in outcomes.values())
        return ("passed", f"{passed} case{'s' * (passed > 1)}") if passed else ("not run", "")

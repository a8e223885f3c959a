"""The tiers of tests, in the order they are begun."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tools.environments import DBT112, MAIN, SPARK35, Environment

GATE_SECONDS = 2000
"""What all tiers but the long ones are to take on two idle cores, environments made anew."""

_PYTEST = ("python", "-m", "pytest", "-q")
# Two processes, each with a Spark session of its own: most tests wait for one core's planning, not for data.
_IN_TWO = ("-n", "2", "--dist", "loadscope", "--no-loadscope-reorder")
# A process of its own also then: one that a test has left with a waiting thread would not end, this one is ended.
_IN_ONE = ("-n", "1")
# What may go another way on another Spark: its frames and tasks, its catalog, its SQL. The mark `core` says which tests.
_ON_BOTH_SPARKS = (
    "tests/spark/test_write_operations.py",
    "tests/spark/test_keys_and_indexes.py",
    "tests/spark/test_refused_writes.py",
    "tests/spark/test_services.py",
    "tests/spark/test_catalog_tables.py",
    "tests/spark/test_catalog_mor.py",
    "tests/spark/test_jvm.py",
)

_SUITE = ("tests/functional", "tests/conformance")
_CARD = (*_PYTEST, "--long", "-p", "tests.conformance.card", "--card", "docs/conformance.md")


@dataclass(frozen=True)
class Tier:
    """A group of checks that run one after the other.

    Args:
        name: Word to call it by.
        what: One line of description.
        commands: The commands; the first word is a program of the environment.
        environment: Where they run.
        needs_apache_hudi: Apache Hudi is set up before, and the tier is told when it cannot be had.
        long: Takes too long for every change; runs when it is named, or with ``--long``.
        in_two: Runs in two processes also where another tier runs beside it, as it has no session to start.
    """

    name: str
    what: str
    commands: tuple[tuple[str, ...], ...]
    environment: Environment = MAIN
    needs_apache_hudi: bool = False
    long: bool = False
    in_two: bool = False

    def lines(self, *, alone: bool) -> tuple[tuple[str, ...], ...]:
        """Give the commands; the tests run in two processes where the tier has both cores, else in one."""
        more = _IN_TWO if alone or self.in_two else _IN_ONE
        return tuple(
            (*_PYTEST, *more, *each[len(_PYTEST) :]) if each[: len(_PYTEST)] == _PYTEST else each
            for each in self.commands
        )


# Three run at a time on two cores, as each waits at times (Java starts, one query follows another). They begin in this
# order: the longest early, and at the end one that takes what the others leave of both cores.
TIERS = (
    Tier(
        "style",
        "ruff, mypy --strict on engine and adapter, import contracts, the documentation as a site",
        (
            ("ruff", "check", "."),
            ("ruff", "format", "--check", "-q", "."),
            ("mypy",),
            ("lint-imports",),
            ("python", "-m", "tools.adapter_imports"),
            ("mkdocs", "build", "--strict", "-q"),
        ),
    ),
    Tier(
        "dbt",
        "dbt projects and dbt's conformance suite on PySpark 4",
        ((*_PYTEST, "tests/functional"),),
    ),
    Tier("spark", "the engine on PySpark 4", ((*_PYTEST, "tests/spark"),)),
    Tier(
        "judge",
        "Apache Hudi 0.15.0 and 1.2.0 and hudi-rs read and write our tables, and we theirs",
        ((*_PYTEST, "tests/judge"),),
        needs_apache_hudi=True,
    ),
    Tier(
        "unit",
        "every room of the engine without Spark, and the golden tables",
        ((*_PYTEST, "tests/unit", "tests/golden"),),
        in_two=True,
    ),
    Tier(
        "spark35",
        "the core of both on PySpark 3.5",
        ((*_PYTEST, "-m", "core", *_ON_BOTH_SPARKS), (*_PYTEST, "-m", "core", "tests/functional")),
        environment=SPARK35,
    ),
    Tier("serve", "the server and its clients on PySpark 4", ((*_PYTEST, "tests/serve"),)),
    Tier(
        "demo",
        "three months of the dbt project of integration_tests, read back by two independent readers",
        (("python", "integration_tests/run.py", "--quick"),),
    ),
    Tier(
        "faults",
        "writers killed at every step, two writers at once",
        ((*_PYTEST, "tests/faults", "tests/reliability"),),
        in_two=True,
    ),
    Tier(
        "conformance",
        "the whole of dbt's adapter suite on both catalogs and table types, and docs/conformance.md written from it (with --long)",
        tuple(
            (*_CARD, "--on", on, *_SUITE)
            for on in ("directory,cow", "directory,mor", "directory,mor,8", "hive,cow", "hive,mor,9")
        ),
        long=True,
    ),
    Tier(
        "long",
        "what takes too long for every change: installations from nothing, long random runs (with --long)",
        (
            (*_PYTEST, "tests/long"),
            (*_PYTEST, "--long", "-m", "long", "tests"),
            ("python", "integration_tests/run.py"),
        ),
        needs_apache_hudi=True,
        long=True,
    ),
    Tier(
        "dbt112",
        "dbt projects and dbt's adapter suite on dbt-core 1.12 (with --long)",
        ((*_PYTEST, *_SUITE), *((*_CARD, "--on", on, *_SUITE) for on in ("directory,cow", "hive,mor"))),
        environment=DBT112,
        long=True,
    ),
    Tier(
        "long35",
        "what the tier spark35 leaves out (with --long)",
        (
            (*_PYTEST, "--long", "-m", "long or not core", *_ON_BOTH_SPARKS),
            (
                *_PYTEST,
                "--long",
                "-m",
                "long or not core",
                *(
                    f"tests/functional/test_{each}.py"
                    for each in ("basic", "incremental", "snapshots", "strategies")
                ),
            ),
        ),
        environment=SPARK35,
        long=True,
    ),
)


def pick(names: list[str], complain: Callable[[str], None], *, long: bool = False) -> tuple[Tier, ...]:
    """Give the tiers of some names; an unknown name goes to ``complain``.

    Args:
        names: Their names; none for all, without the long ones.
        complain: Gets a sentence about an unknown name.
        long: Whether the long ones are wanted too.
    """
    known = {tier.name: tier for tier in TIERS}
    for name in names:
        if name not in known:
            complain(f"there is no tier {name!r}; the tiers are: {', '.join(known)}")
    return tuple(
        tier for tier in TIERS if tier.name in names or (tier.long and long) or not (names or tier.long)
    )

"""Which tests a model wants before its commit: ``audit`` and ``pre_commit_tests``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dbt.adapters.hudi.model.merge import MergeConfig
from dbt.adapters.hudi.model.reading import Problems, boolean

_NAME = re.compile(r"[\w.]+\Z", re.ASCII)
_THIS = re.compile(r"\{\{\s*this\s*\}\}")
_JINJA = re.compile(r"\{[{%]")
_LEGAL = "give a list of names of the model's tests, SQL that selects failing rows from the table 'this', or {name: ..., sql: ...}"


@dataclass(frozen=True)
class AuditConfig:
    """Tests before the commit.

    Args:
        written: Name and SQL of failing rows, which reads the state to be as ``this``.
    """

    everything: bool = False
    named: tuple[str, ...] = ()
    written: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.everything or self.named or self.written)


@dataclass(frozen=True)
class AuditTest:
    """One test, compiled.

    Args:
        warn_if: Comparison with the count that makes a warning.
        error_if: Comparison with the count that makes an error.
        severity: ``error`` or ``warn``.
        store: Schema and name of the table that takes the failing rows, None for none.
    """

    name: str
    sql: str
    fail_calc: str = "count(*)"
    warn_if: str = "!= 0"
    error_if: str = "!= 0"
    severity: str = "error"
    store: tuple[str, str] | None = None

    @property
    def counted(self) -> str:
        """Query of one row: failures, whether to warn, whether to fail."""
        count = self.fail_calc
        return (
            f"select {count} as failures, {count} {self.warn_if} as should_warn, {count} {self.error_if} as should_error\n"
            f"from (\n{self.sql}\n) dbt_internal_test"
        )


@dataclass(frozen=True)
class PlannedTest:
    """One test, which may look at the table to be while it is compiled."""

    name: str
    compiled: Callable[[], AuditTest]


def read_audit(config: Mapping[str, object], merge: MergeConfig, problems: Problems) -> AuditConfig:
    """Read ``audit``, also known as ``wap``, and ``pre_commit_tests`` of a model."""
    given = {key: boolean(key, config.get(key), problems, default=False) for key in ("audit", "wap")}
    if all(config.get(key) is not None for key in given) and given["audit"] != given["wap"]:
        problems.add("audit and wap are one config and have different values; set one of them")
    everything = any(given.values())
    tests = config.get("pre_commit_tests") or ()
    items = (tests,) if isinstance(tests, (str, Mapping)) else tests
    if not isinstance(items, (list, tuple)):
        problems.add(f"pre_commit_tests is {tests!r}; {_LEGAL}")
        items = ()
    named, written = [], []
    for number, item in enumerate(items, 1):
        if isinstance(item, str) and _NAME.match(item.strip()):
            named.append(item.strip())
            continue
        test = {"sql": item} if isinstance(item, str) else item
        if (
            not isinstance(test, Mapping)
            or not str(test.get("sql") or "").strip()
            or set(test) - {"name", "sql"}
        ):
            problems.add(f"pre_commit_tests has {item!r}; {_LEGAL}")
            continue
        sql = _THIS.sub("this", str(test["sql"]).strip().rstrip(";"))
        if _JINJA.search(sql):
            problems.add(
                f"pre_commit_tests has {item!r}; of Jinja only {{{{ this }}}} is known here, make it a data test and give its name"
            )
        written.append((str(test.get("name") or f"pre_commit_tests[{number}]"), sql))
    audit = AuditConfig(bool(everything), tuple(named), tuple(written))
    if audit and merge.strategy is not None and merge.operation is None:
        problems.add(
            f"incremental_strategy is {merge.strategy!r}, a strategy of the project's own that writes by SQL, so nothing can be "
            "tested before its commits; leave out audit and pre_commit_tests, or use a strategy of dbt-hudi"
        )
    return audit

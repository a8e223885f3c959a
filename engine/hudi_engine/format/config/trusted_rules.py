"""Which merge rules of the user's own may be imported.

A table names its rule in its properties, and whoever can write to the table's folder can write there. So a rule is imported
only when this process was given its name: by an option of a call, or by the session. The answer travels with the table's
settings to the executors.
"""

from __future__ import annotations

from hudi_engine.format.config.declared.table_options import TableOptions

RULE_PROPERTY = TableOptions.MERGE_RULE.key
"""Table property and option: import path of a merge rule, ``package.module:name``."""

SESSION_SETTING = "spark.hudi.merge.rules"
"""Spark setting: import paths, separated by commas, that tables may name."""

_trusted: set[str] = set()


def trust_rules(paths: str | None) -> None:
    """Allow rules to be imported in this process."""
    _trusted.update(path.strip() for path in (paths or "").split(",") if path.strip())


def is_trusted(path: str) -> bool:
    """Return whether the rule at an import path may be imported."""
    return path in _trusted

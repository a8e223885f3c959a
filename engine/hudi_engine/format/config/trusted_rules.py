"""Which code of the user's own is imported: merge rules, and what an option names as ``package.module:name``.

A table names its rule in its properties, and whoever can write to the table's folder can write there. So a rule is imported
only when this process was given its name: by an option of a call, or by the session. The answer travels with the table's
settings to the executors.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.table_options import TableOptions

RULE_PROPERTY = TableOptions.MERGE_RULE.key
"""Table property and option: import path of a merge rule, ``package.module:name``."""

SESSION_SETTING = "spark.hudi.merge.rules"
"""Spark setting: import paths, separated by commas, that tables may name."""

_trusted: set[str] = set()
_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*\Z")


def trust_rules(paths: str | None) -> None:
    """Allow rules to be imported in this process."""
    _trusted.update(path.strip() for path in (paths or "").split(",") if path.strip())


def is_trusted(path: str) -> bool:
    """Return whether the rule at an import path may be imported."""
    return path in _trusted


def imported(path: str, key: str) -> object:
    """Return what an import path names. The caller has to know that the user gave it, and not a table.

    Args:
        key: The option, for messages.

    Raises:
        ConfigError: It is no import path, or nothing is there.
    """
    if not _PATH.match(path):
        raise ConfigError(f"{key} is {path!r}; it must look like 'package.module:name'")
    module_name, _, name = path.partition(":")
    try:
        found: object = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"{key} is {path!r}, which cannot be imported: {error}. Install the package that has it for the driver and for the "
            "executors"
        ) from error
    return found


def imported_function(path: str, key: str) -> Callable[..., Any]:
    """Return the function that an import path names, or an object of a class that is called as one; see `imported`."""
    found = imported(path, key)
    made: Any = found() if isinstance(found, type) else found
    if not callable(made):
        raise ConfigError(f"{key} is {path!r}, which is {type(made).__name__}; it must be a function")
    function: Callable[..., Any] = made
    return function

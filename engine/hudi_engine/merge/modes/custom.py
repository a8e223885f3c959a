"""Merge rules of the user's own, named by import path in the table property ``hoodie.engine.merge.rule``.

The path, ``package.module:name``, must lead to a :class:`MergeRule` in a module that is installed wherever
the table is read or written. Such a rule subclasses :class:`MergeRule` with ``fills=True``, so that it sees
whole rows, and overrides ``merge``.
"""

from __future__ import annotations

import importlib
import re

from hudi_engine.errors import ConfigError
from hudi_engine.merge.modes.rule import MergeRule

RULE_PROPERTY = "hoodie.engine.merge.rule"
_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*\Z")


def load_rule(path: str) -> MergeRule:
    """The rule at an import path.

    Args:
        path: ``package.module:name``.

    Raises:
        ConfigError: The path is malformed, leads nowhere, or not to a rule.
    """
    if not _PATH.match(path):
        raise ConfigError(f"{RULE_PROPERTY} is {path!r}; it must look like 'package.module:name'")
    module_name, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"{RULE_PROPERTY} is {path!r}, which cannot be imported: {error}. Install the package that has "
            "it for the driver and for the executors"
        ) from error
    if not isinstance(found, MergeRule):
        raise ConfigError(
            f"{RULE_PROPERTY} is {path!r}, which is {type(found).__name__}; it must be a MergeRule instance"
        )
    return found

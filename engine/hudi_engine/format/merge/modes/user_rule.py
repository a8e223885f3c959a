"""Merge rules of the user's own, named by import path in the table property ``hoodie.engine.merge.rule``.

The path, ``package.module:name``, must lead to a :class:`MergeRule` in a module that is installed wherever
the table is read or written, and the caller or the session must allow it by name, since a table's properties are only
a text in its folder. Such a rule subclasses :class:`MergeRule` and overrides ``first``, to say which of two rows stands
whole, or ``merge``, to make a row of both; it is asked of whole rows wherever two of a key meet.
"""

from __future__ import annotations

import importlib
import re

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.trusted_rules import RULE_PROPERTY, SESSION_SETTING, is_trusted
from hudi_engine.format.merge.modes.rule import MergeRule

_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*\Z")


def load_rule(path: str) -> MergeRule:
    """Return the rule at an import path."""
    if not _PATH.match(path):
        raise ConfigError(f"{RULE_PROPERTY} is {path!r}; it must look like 'package.module:name'")
    if not is_trusted(path):
        raise ConfigError(
            f"the table names the merge rule {path!r} in its properties; code is imported only when you allow it: give the "
            f"option {RULE_PROPERTY}={path} with the call, or set {SESSION_SETTING}={path} for the Spark session"
        )
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

"""The incremental strategies that a project has macros for."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

from hudi_engine.format.spelling import nearest

from dbt.adapters.hudi.model.merge import STRATEGIES, is_known

INTERNAL_PACKAGES = ("dbt", "dbt_spark", "dbt_hudi")
_MACRO = re.compile(r"get_incremental_(\w+)_sql")
# dbt's own macros of these names look for one of the project that begins so
_DISPATCHED = re.compile(
    r"(?:hudi|spark|default)__get_incremental_(append|default|delete_insert|insert_overwrite|merge|microbatch)_sql"
)


def own_strategies(macros: Iterable[Any], project: str = "") -> frozenset[str]:
    """Return the incremental strategies that a project, or a package it uses, has macros for; `default` stands for no config.

    Args:
        macros: The macros of the project and its packages, dbt's own among them.
        project: The name of the project, of whose macros alone dbt takes the default and those that it dispatches to.
    """
    found: set[str] = set()
    for macro in macros:
        is_projects = macro.package_name == project
        named = _MACRO.fullmatch(macro.name) or (_DISPATCHED.fullmatch(macro.name) if is_projects else None)
        if named is None or macro.package_name in INTERNAL_PACKAGES:
            continue
        if is_projects or named[1] != "default":
            found.update((named[1], named[1].replace("delete_insert", "delete+insert")))
    return frozenset(found)


def lacks_macro(strategy: object, own: Collection[str]) -> bool:
    """Tell whether a strategy is neither ours nor nearly so: the user's own, whose macro dbt does not find.

    That is told by the node itself, as dbt does; the other nodes run.

    Args:
        strategy: The incremental strategy of a node, None for the default.
        own: Those that the project has macros for.
    """
    name = str(strategy or "default")
    if name == "default" or is_known(name) or name in own:
        return False
    return nearest(name, STRATEGIES) is None

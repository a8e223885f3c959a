"""dbt at its own work in less time: what it would find again for every project of a test run is found once."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from dbt.clients import jinja_static
from dbt.contracts.graph.nodes import Macro
from dbt.parser import manifest as parser
from dbt_common.behavior_flags import BehaviorFlagRendered


def quicken_dbt(patch: pytest.MonkeyPatch) -> None:
    """Leave out of dbt's parsing what has no result: it is most of the time that a small project takes.

    dbt makes a context of some hundred names for the description of each of its 600 macros, though hardly one has a
    description to be rendered; and it walks the stack with the source of every frame for the name of the module that
    declares a flag, which is one and the same. It makes the parser anew that finds the calls of each macro.
    """
    patch.setattr(
        parser,
        "generate_runtime_docs_context",
        functools.partial(_docs_context, parser.generate_runtime_docs_context),
    )
    patch.setattr(
        BehaviorFlagRendered,
        "_default_source",
        staticmethod(functools.cache(BehaviorFlagRendered._default_source)),
    )
    patch.setattr(jinja_static, "get_environment", functools.cache(jinja_static.get_environment))


def _docs_context(real: Any, config: Any, target: Any, *rest: Any) -> dict[str, Any]:
    plain = isinstance(target, Macro) and not any(each.description for each in (target, *target.arguments))
    return {} if plain else real(config, target, *rest)

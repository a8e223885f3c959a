"""Models that call ``hudi_changes``, and the tables that a model names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

_CALL = re.compile(r"\bhudi_changes\s*\(")
_JINJA_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)


def takes_changes(code: str) -> bool:
    """Tell whether the code of a model calls ``hudi_changes``, as it is written, without the macros it calls."""
    return any(_CALL.search(each) for each in _JINJA.findall(_JINJA_COMMENT.sub("", code)))


def check_takes_changes(model: str, strategy: str, own: Collection[str]) -> None:
    """Refuse changes in a model of which not every commit notes how far its inputs are consumed."""
    why = None
    if strategy == "microbatch":
        why = "its batches take the rows of a time each, and the first would take the changes of all"
    elif strategy in own:
        why = "SQL of a macro notes no checkpoint, so the same changes would come again in every run"
    if why is not None:
        raise DbtRuntimeError(
            f"hudi_changes stands in {model}, whose incremental_strategy is {strategy!r}: {why}. Use 'merge', 'append' or another "
            "strategy of dbt-hudi's for it, or ref() in place of hudi_changes()"
        )


def tables_named(model: Mapping[str, Any], manifest: Any) -> frozenset[str]:
    """Return the tables that a node refers to, each as schema and name in lower case."""
    return frozenset(
        table_of(each) for _, each in known_nodes((model.get("depends_on") or {}).get("nodes"), manifest)
    )


def known_nodes(names: Collection[str] | None, manifest: Any) -> Iterator[tuple[str, Any]]:
    """Yield the models, seeds, snapshots and sources of some unique ids."""
    for name in names or ():
        node = manifest.nodes.get(name) or manifest.sources.get(name)
        if node is not None:
            yield name, node


def table_of(node: Any) -> str:
    """Return schema and name of a node's table, in lower case."""
    return f"{node.schema}.{getattr(node, 'identifier', None) or node.alias}".lower()

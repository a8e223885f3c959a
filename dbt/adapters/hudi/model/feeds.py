"""Whether a model can take what changed in its inputs since its last run."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

_OF_BATCHES = "microbatch"
_IN_ITS_READERS = "ephemeral"
_MADE_OF_OTHERS = ("view", _IN_ITS_READERS)
_CALL = re.compile(r"\bhudi_changes\s*\(")
_JINJA_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)


def takes_changes(code: str) -> bool:
    """Tell whether the code of a model calls ``hudi_changes``, as it is written, without the macros it calls."""
    return any(_CALL.search(each) for each in _JINJA.findall(_JINJA_COMMENT.sub("", code)))


def check_takes_changes(model: str, strategy: str, own: Collection[str]) -> None:
    """Refuse changes in a model of which not every commit notes how far its inputs are consumed.

    Args:
        own: Strategies that the project has macros for.

    Raises:
        DbtRuntimeError: Its batches would take each other's changes, or its macro would take the same ones again.
    """
    why = None
    if strategy == _OF_BATCHES:
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
        _table_of(each) for _, each in _known((model.get("depends_on") or {}).get("nodes"), manifest)
    )


def sampled_beside(
    model: Mapping[str, Any], inputs: Collection[str], in_run: Collection[str], manifest: Any
) -> str | None:
    """Return the name of a node whose rows a run with ``--sample`` makes a part of, where a model reads it beside its inputs.

    That is what the run builds over a relation with ``event_time``, straight or through others of these and through views; a
    view that the run does not build reads no sample by itself. What an ephemeral model reads its readers read. Changes are no
    sample, so that what is made of them is none.

    Args:
        inputs: The tables whose changes it takes, as schema and name in lower case.
        in_run: Unique ids of the nodes that the run builds.
    """
    seen: set[tuple[str, bool, bool]] = set()
    above = [(each, "", True) for each in (model.get("depends_on") or {}).get("nodes") or ()]
    while above:
        name, through, is_compiled = above.pop()
        for key, node in _known([name], manifest):
            if through and is_compiled and getattr(node.config, "event_time", None):
                return through
            step = (key, bool(through), is_compiled)
            if step in seen or (not through and _table_of(node) in inputs):
                continue
            seen.add(step)
            kind = getattr(node.config, "materialized", None)
            if takes_changes(getattr(node, "raw_code", None) or ""):
                continue
            if kind in _MADE_OF_OTHERS or key in in_run:
                is_inlined = kind == _IN_ITS_READERS
                inner = (through, is_compiled) if is_inlined else (node.name, key in in_run)
                above += [(each, *inner) for each in getattr(node, "depends_on_nodes", ())]
    return None


def _known(names: Collection[str] | None, manifest: Any) -> Iterator[tuple[str, Any]]:
    """Yield the models, seeds, snapshots and sources of some unique ids."""
    for name in names or ():
        node = manifest.nodes.get(name) or manifest.sources.get(name)
        if node is not None:
            yield name, node


def _table_of(node: Any) -> str:
    return f"{node.schema}.{getattr(node, 'identifier', None) or node.alias}".lower()

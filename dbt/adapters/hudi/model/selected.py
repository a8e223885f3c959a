"""The configs of all nodes of a run, looked at together before Spark starts."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from dbt.adapters.events import types
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.events.functions import warn_or_error
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.hudi.logs import warn
from dbt.adapters.hudi.model.known_configs import misspelt_configs, unused_configs, with_meta
from dbt.adapters.hudi.model.merge import INTERNAL_PACKAGES, lacks_macro, own_strategies
from dbt.adapters.hudi.model.packages import config_of_package
from dbt.adapters.hudi.model.plan import ModelPlan


def takes_changes(code: str) -> str | None:
    """Return which of the macros for changes and new files the code of a model calls itself; macros that it calls are not read."""
    found = (_CALL.search(each) for each in _JINJA.findall(_JINJA_COMMENT.sub("", code)))
    return next((each[1] for each in found if each), None)


def check_takes_changes(model: str, strategy: str, own: Collection[str], macro: str = "hudi_changes") -> None:
    """Refuse changes in a model of which not every commit notes how far its inputs are consumed."""
    why = None
    if strategy == "microbatch":
        why = "its batches take the rows of a time each, and the first would take those of all"
    elif strategy in own:
        why = "SQL of a macro notes no checkpoint, so the same rows would come again in every run"
    if why is not None:
        raise DbtRuntimeError(
            f"{macro} is used in {model}, whose incremental_strategy is {strategy!r}: {why}. Use 'merge', 'append' or another "
            f"strategy of dbt-hudi's for it, or its relation in place of {macro}()"
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


_CALL = re.compile(r"\b(hudi_changes|hudi_new_files)\s*\(")
_JINJA_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_OF_TABLES = ("incremental", "table", "seed", "snapshot")
_OF_OTHERS: Mapping[str, str] = dict.fromkeys(
    ("materialized_view", "streaming_table", "dynamic_table"),
    "dbt-hudi has no table that refreshes itself; use incremental with a schedule, or view",
)
_READ_CONFIG = re.compile(r"config(?:\.(?:meta_)?(?:get|require)\(|\[)\s*['\"]([\w-]+)['\"]|config\.(\w+)")
_SHOWN_NODES = 3
_ENFORCED = (ConstraintType.check, ConstraintType.not_null)


def check_nodes(
    nodes: Collection[Any],
    macros: Collection[Any],
    resolve: Callable[[Any, Mapping[str, object]], ModelPlan],
    project: str = "",
) -> None:
    """Refuse the nodes that cannot be built, all in one message, and warn of configs and constraints without effect.

    Args:
        resolve: Checks the config of a node that becomes a table.
        project: Name of the root project, whose own nodes are checked more strictly than those of packages.
    """
    read_by_macros = _keys_read(
        macro.macro_sql for macro in macros if macro.package_name not in INTERNAL_PACKAGES
    )
    own = own_strategies(macros, project)
    unused: dict[tuple[str, str], list[str]] = {}
    problems = []
    planned: list[tuple[Any, Mapping[str, object], ModelPlan | None]] = []
    # dbt names the nodes in the order in which its threads get to them
    for node in sorted(nodes, key=lambda each: str(each.name)):
        try:
            config = with_meta(node.config.to_dict(omit_none=True), str(node.name))
        except DbtRuntimeError as error:
            problems.append(error.msg)
            continue
        _warn_constraints(node, config)
        problems += as_of_problems(node, config, macros, project)
        not_used = unused_configs(config, read_by_macros | _keys_read([node.raw_code or ""]))
        is_table, of_package = config.get("materialized") in _OF_TABLES, node.package_name != project
        if is_table and of_package:
            config, left_out = config_of_package(config)
            not_used |= left_out
        elif is_table and (misspelt := misspelt_configs(not_used)):
            problems += [f"{node.resource_type} {node.name}: {each}" for each in misspelt]
            continue
        for key, word in not_used.items():
            unused.setdefault((key, word), []).append(node.name)
        if lacks_macro(config.get("incremental_strategy"), own):
            continue
        try:
            planned.append((node, config, _plan_of(node, config, resolve, own)))
        except DbtRuntimeError as error:
            problems.append(error.msg)
    for (key, word), names in unused.items():
        warn(f"{key}, a config of {_listed(names)}, is not used: {word}")
    problems += _collisions(planned)
    if problems:
        raise DbtRuntimeError("\n".join(problems))


def as_of_problems(
    node: Any, config: Mapping[str, object], macros: Collection[Any], project: str
) -> list[str]:
    """Refuse ``as_of`` where a ``ref`` or ``source`` macro of the project would return tables as they are now.

    Args:
        node: A model, snapshot or data test, with its ``refs`` and ``sources``.
    """
    if config.get("as_of") is None:
        return []
    return [
        f"as_of of {node.name} would be ignored: the macro {macro.name} in {macro.original_file_path} (package "
        f"{macro.package_name}) replaces dbt-hudi's and returns tables as they are now. Let it return hudi_pinned(...) with its "
        "relation in the brackets, or take as_of out and write hudi_as_of() in the queries"
        for name, uses in (("ref", node.refs), ("source", node.sources))
        for macro in macros
        if uses and macro.name == name and macro.package_name in (node.package_name, project)
        if "hudi_pinned" not in macro.macro_sql and "hudi_as_of" not in macro.macro_sql
    ]


def _collisions(planned: Iterable[tuple[Any, Mapping[str, object], ModelPlan | None]]) -> list[str]:
    """Refuse nodes that would be one relation, or one table: each would replace the other's rows."""
    nodes: dict[str, list[str]] = {}
    for node, config, plan in planned:
        label = f"{node.resource_type} {node.name}"
        if config.get("materialized") != "ephemeral":
            relation = f"{node.schema or ''}.{node.alias or ''}".lower()
            nodes.setdefault(f"one relation, {relation}, as Spark's names have no case", []).append(label)
        if plan is not None:
            nodes.setdefault(f"one table, the one at {plan.base}", []).append(label)
    shared: dict[tuple[str, ...], str] = {}
    for what, labels in nodes.items():
        if len(labels) > 1:
            shared.setdefault(tuple(labels), what)
    return [
        f"{' and '.join(labels)} would be {what}: each would replace the other's rows. Give them different names (alias), schemas "
        "or folders (location_root; without it the schema is part of a table's folder)"
        for labels, what in shared.items()
    ]


class ConstraintNotEnforced(types.ConstraintNotEnforced):
    """dbt's event, by whose name it is silenced; dbt's text promises that the constraint is part of a DDL statement."""

    def message(self) -> str:
        """Return the text of the warning."""
        return (
            f"The constraint type {self.constraint} is not enforced by {self.adapter}, and a Hudi table does not keep it. Set "
            "'warn_unenforced: false' on this constraint to ignore this warning."
        )


def _warn_constraints(node: Any, config: Mapping[str, object]) -> None:
    """Warn of the constraints of an enforced contract that a Hudi table does not have; of views dbt warns."""
    contract = config.get("contract")
    if config.get("materialized") not in ("table", "incremental") or not isinstance(contract, Mapping):
        return
    if not contract.get("enforced"):
        return
    found = [(each, ", ".join(each.columns)) for each in getattr(node, "constraints", None) or ()]
    for name, column in node.columns.items():
        found += [(each, str(name)) for each in getattr(column, "constraints", None) or ()]
    for event, enforces_none in ((ConstraintNotEnforced, True), (types.ConstraintNotSupported, False)):
        ignored = [
            " ".join(filter(None, (each.type, columns and f"({columns})", each.expression)))
            for each, columns in found
            if each.type not in _ENFORCED and (each.type != ConstraintType.custom) is enforces_none
            if each.warn_unenforced and each.warn_unsupported
        ]
        if ignored:
            warn_or_error(event(constraint=f"{', '.join(ignored)} of {node.name}", adapter="dbt-hudi"))


def _plan_of(
    node: Any,
    config: Mapping[str, object],
    resolve: Callable[[Any, Mapping[str, object]], ModelPlan],
    own: Collection[str],
) -> ModelPlan | None:
    """Resolve a node that becomes a table; None for others."""
    kind = str(config.get("materialized"))
    if kind == "incremental" and (macro := takes_changes(node.raw_code or "")):
        # dbt shows no message of a batch that fails
        check_takes_changes(node.name, str(config.get("incremental_strategy") or "default"), own, macro)
    if kind in _OF_OTHERS:
        raise DbtRuntimeError(
            f"materialized is {kind!r} for {node.name}; legal values: view, table, incremental, ephemeral. {_OF_OTHERS[kind]}"
        )
    return resolve(node, config) if kind in _OF_TABLES else None


def _keys_read(texts: Iterable[str]) -> set[str]:
    """Config keys that code reads by name."""
    return {key or attribute for text in texts for key, attribute in _READ_CONFIG.findall(text)}


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN_NODES])
    return shown if len(names) <= _SHOWN_NODES else f"{shown} and {len(names) - _SHOWN_NODES} more"

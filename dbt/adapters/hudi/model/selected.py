"""The configs of all nodes of a run, looked at together before Spark starts."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from dbt_common.events.contextvars import get_node_info
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.hudi.logs import warn
from dbt.adapters.hudi.model.contracts import say_of_constraints
from dbt.adapters.hudi.model.feeds import check_takes_changes, takes_changes
from dbt.adapters.hudi.model.hook_calls import KnownMacros, hook_problems
from dbt.adapters.hudi.model.known_configs import unused_configs
from dbt.adapters.hudi.model.meta import with_meta
from dbt.adapters.hudi.model.one_name import TakenNames
from dbt.adapters.hudi.model.own_strategies import INTERNAL_PACKAGES, lacks_macro, own_strategies
from dbt.adapters.hudi.model.pinned import as_of_problems
from dbt.adapters.hudi.model.plan import ModelPlan

_OF_TABLES = ("incremental", "table", "seed", "snapshot")
_OF_OTHERS: Mapping[str, str] = dict.fromkeys(
    ("materialized_view", "streaming_table", "dynamic_table"),
    "dbt-hudi has no table that refreshes itself; use incremental with a schedule, or view",
)
_KINDS = ("model", "seed", "snapshot")
_READ_CONFIG = re.compile(r"config(?:\.(?:meta_)?(?:get|require)\(|\[)\s*['\"]([\w-]+)['\"]|config\.(\w+)")
_SHOWN_NODES = 3


class SelectedNodes:
    """The nodes dbt names when it makes the schemas of a run; safe to use from all of dbt's threads."""

    def __init__(self) -> None:
        self._noted: dict[str, Any] = {}
        self._lock = threading.Lock()

    def note(self, node: Any) -> None:
        """Note a node that is named outside of any node's own work."""
        # What stands in for a node of another run, as in `dbt clone`, has no id: that run looked at its configs.
        unique_id = getattr(node, "unique_id", None)
        if (
            unique_id
            and getattr(node, "resource_type", None) in _KINDS
            and not get_node_info().get("unique_id")
        ):
            with self._lock:
                self._noted[unique_id] = node

    def clear(self) -> None:
        """Forget the nodes named before, while dbt parsed or ran something else."""
        self.take()

    def take(self) -> list[Any]:
        """Return the nodes noted since this was last asked."""
        with self._lock:
            found, self._noted = list(self._noted.values()), {}
        return found


SELECTED = SelectedNodes()


def check_nodes(
    nodes: Collection[Any],
    macros: Collection[Any],
    resolve: Callable[[Any], ModelPlan],
    project: str = "",
) -> None:
    """Refuse the nodes that cannot be built, all in one message, and say which configs and constraints nothing comes of.

    Args:
        nodes: Models, seeds and snapshots of the run.
        macros: The macros of the project and its packages.
        resolve: Checks the config of a node that becomes a table; raises DbtRuntimeError.
        project: The name of the project, whose macros its packages' nodes call too.

    Raises:
        DbtRuntimeError: Some nodes cannot be built.
    """
    read_by_macros = _keys_read(
        macro.macro_sql for macro in macros if macro.package_name not in INTERNAL_PACKAGES
    )
    known, own = KnownMacros.of(macros), own_strategies(macros, project)
    unused: dict[tuple[str, str], list[str]] = {}
    problems = []
    taken = TakenNames()
    configs: list[tuple[Any, dict[str, object]]] = []
    # dbt names the nodes in the order in which its threads get to them
    for node in sorted(nodes, key=lambda each: str(each.name)):
        try:
            config = node_config(node)
        except DbtRuntimeError as error:
            problems.append(error.msg)
            continue
        configs.append((node, config))
        say_of_constraints(node, config)
        for key, word in unused_configs(config, read_by_macros | _keys_read([node.raw_code or ""])).items():
            unused.setdefault((key, word), []).append(node.name)
        if lacks_macro(config.get("incremental_strategy"), own):
            continue
        try:
            plan = _plan_of(node, config, resolve, own)
        except DbtRuntimeError as error:
            problems.append(error.msg)
            continue
        taken.note(node, config, plan)
        if plan is not None or config.get("materialized") == "view":
            problems += hook_problems(node, plan, known)
    for (key, word), names in unused.items():
        warn(f"{key}, a config of {_listed(names)}, is not used: {word}")
    problems += as_of_problems(configs, macros, project)
    problems += taken.problems()
    if problems:
        raise DbtRuntimeError("\n".join(problems))


def node_config(node: Any) -> dict[str, object]:
    """Return all that the config of a node says, dbt's own keys and others.

    Raises:
        DbtRuntimeError: Its ``meta: {hudi: ...}`` is not one of configs.
    """
    return with_meta(node.config.to_dict(omit_none=True), str(node.name))


def _plan_of(
    node: Any, config: Mapping[str, object], resolve: Callable[[Any], ModelPlan], own: Collection[str]
) -> ModelPlan | None:
    """Resolve a node that becomes a table, and warn of its options in two spellings; None for others."""
    kind = str(config.get("materialized"))
    if kind == "incremental" and takes_changes(node.raw_code or ""):
        check_takes_changes(node.name, str(config.get("incremental_strategy") or "default"), own)
    if kind in _OF_OTHERS:
        raise DbtRuntimeError(
            f"materialized is {kind!r} for {node.name}; legal values: view, table, incremental, ephemeral. {_OF_OTHERS[kind]}"
        )
    plan = resolve(node) if kind in _OF_TABLES else None
    for told in plan.overridden if plan is not None else ():
        warn(f"{node.resource_type} {node.name}: {told}")
    return plan


def _keys_read(texts: Iterable[str]) -> set[str]:
    """Config keys that code asks for by name."""
    return {key or attribute for text in texts for key, attribute in _READ_CONFIG.findall(text)}


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN_NODES])
    return shown if len(names) <= _SHOWN_NODES else f"{shown} and {len(names) - _SHOWN_NODES} more"

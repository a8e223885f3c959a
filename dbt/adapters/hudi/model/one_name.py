"""Nodes of one run that would be one relation, or one table, where each would take the place of the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.hudi.model.plan import ModelPlan


class TakenNames:
    """The relations and tables that the nodes of a run become."""

    def __init__(self) -> None:
        self._relations: dict[tuple[str, ...], list[Any]] = {}
        self._tables: dict[str, list[Any]] = {}

    def note(self, node: Any, config: Mapping[str, object], plan: ModelPlan | None) -> None:
        """Note a node, with its config, and with its plan where it becomes a table."""
        if config.get("materialized") != "ephemeral":
            # Spark tells no two names apart by their case
            name = tuple(str(part or "").lower() for part in (node.database, node.schema, node.alias))
            self._relations.setdefault(name, []).append(node)
        if plan is not None:
            self._tables.setdefault(plan.base, []).append(node)

    def problems(self) -> list[str]:
        """Say which nodes cannot stand beside each other, a text for each."""
        said = {
            _told(nodes): (
                f"{_told(nodes)} would be one relation, {schema}.{name}, as Spark tells no two names apart by their case: each "
                "would take the place of the other. Give them different names (alias), or different schemas"
            )
            for (_, schema, name), nodes in self._relations.items()
            if len(nodes) > 1
        }
        for base, nodes in self._tables.items():
            if len(nodes) > 1:
                said.setdefault(
                    _told(nodes),
                    f"{_told(nodes)} would be one table, the one at {base}: each would replace the other's rows. Give them "
                    "different names (alias), or different folders (location_root; without it the schema is part of a table's "
                    "folder)",
                )
        return list(said.values())


def _told(nodes: list[Any]) -> str:
    return " and ".join(f"{node.resource_type} {node.name}" for node in nodes)

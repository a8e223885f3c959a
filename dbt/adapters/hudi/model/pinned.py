"""The config ``as_of`` where a project has a ``ref`` or ``source`` of its own, which dbt calls in place of ours."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

_PINS = ("hudi_pinned", "hudi_as_of")
_NAMED_BY: Mapping[str, str] = {"ref": "refs", "source": "sources"}


def as_of_problems(
    nodes: Iterable[tuple[Any, Mapping[str, object]]], macros: Collection[Any], project: str
) -> list[str]:
    """Say where nodes have ``as_of`` and would read their tables as they are now, a text for each macro that does so.

    Args:
        nodes: The nodes of a run with their configs.
        macros: The macros of the project and its packages.
    """
    pinned = [node for node, config in nodes if config.get("as_of") is not None]
    by_id = {macro.unique_id: macro for macro in macros} if pinned else {}
    found: dict[str, list[str]] = {}
    for node in pinned:
        for word, uses in _NAMED_BY.items():
            macro = _called(word, (node.package_name, project), macros) if getattr(node, uses) else None
            if macro is not None and not any(each.name in _PINS for each in _reached(macro, by_id)):
                found.setdefault(macro.unique_id, []).append(node.name)
    return [
        f"as_of of {', '.join(names)} would be ignored: the macro {by_id[unique_id].name} in {by_id[unique_id].original_file_path} "
        f"(package {by_id[unique_id].package_name}) stands in place of dbt-hudi's, and gives tables as they are now. Let it return "
        "hudi_pinned(...) with its relation in the brackets, or take as_of out and write hudi_as_of() in the queries"
        for unique_id, names in found.items()
    ]


def _called(name: str, packages: Iterable[str], macros: Iterable[Any]) -> Any:
    """Return the macro that dbt takes for a name: of the node's own package, then of the project; None for dbt-hudi's."""
    known = {macro.package_name: macro for macro in macros if macro.name == name}
    return next((known[package] for package in packages if package in known), None)


def _reached(macro: Any, by_id: Mapping[str, Any]) -> Iterator[Any]:
    """Return a macro and all that it calls, and what those call."""
    waiting, seen = [macro.unique_id], set()
    while waiting:
        unique_id = waiting.pop()
        if unique_id in seen or unique_id not in by_id:
            continue
        seen.add(unique_id)
        yield by_id[unique_id]
        waiting.extend(by_id[unique_id].depends_on.macros)

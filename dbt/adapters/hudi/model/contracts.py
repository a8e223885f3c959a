"""Constraints of a contract that no table keeps, said once a model in dbt's own kinds of warnings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dbt.adapters.events import types
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.events.functions import warn_or_error
from dbt_common.ui import warning_tag

_ENFORCED = (ConstraintType.check, ConstraintType.not_null)
_MATERIALIZED = ("table", "incremental")  # of others dbt-core warns


class ConstraintNotEnforced(types.ConstraintNotEnforced):
    """dbt's warning under its name; dbt's text promises that the constraint gets into a DDL statement."""

    def message(self) -> str:
        """Return the text."""
        return warning_tag(
            f"{self.constraint}: not enforced by dbt-hudi, and kept nowhere. Test it; 'warn_unenforced: false' on the "
            "constraint ends this warning"
        )


class ConstraintNotSupported(types.ConstraintNotSupported):
    """dbt's warning under its name, with the model."""

    def message(self) -> str:
        """Return the text."""
        return warning_tag(
            f"{self.constraint}: not supported by dbt-hudi, and ignored; a table has no DDL that it could be part of. A default "
            "value is a coalesce() in the model's query. 'warn_unsupported: false' on the constraint ends this warning"
        )


def say_of_constraints(node: Any, config: Mapping[str, object]) -> None:
    """Warn of the constraints of a model with an enforced contract that nothing comes of."""
    contract = config.get("contract")
    if config.get("materialized") not in _MATERIALIZED or not isinstance(contract, Mapping):
        return
    if not contract.get("enforced"):
        return
    unenforced, unsupported = [], []
    for constraint, columns in _constraints(node):
        kind = ConstraintType(constraint.type)
        told = f"{kind.value} ({', '.join(columns)})" if columns else kind.value
        if kind == ConstraintType.custom:
            if constraint.warn_unsupported:
                unsupported.append(f"{told} {constraint.expression or ''}".strip())
        elif kind not in _ENFORCED and constraint.warn_unenforced:
            unenforced.append(told)
    for event, found in ((ConstraintNotEnforced, unenforced), (ConstraintNotSupported, unsupported)):
        if found:
            warn_or_error(event(constraint=f"{node.name}, {', '.join(found)}", adapter="hudi"))


def _constraints(node: Any) -> Iterable[tuple[Any, list[str]]]:
    """Yield the constraints of a node with the columns that they are about."""
    for constraint in getattr(node, "constraints", None) or ():
        yield constraint, list(constraint.columns)
    for name, column in node.columns.items():
        for constraint in getattr(column, "constraints", None) or ():
            yield constraint, [str(name)]

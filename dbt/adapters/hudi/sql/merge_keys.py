"""What a MERGE says of keys: which columns its ON compares, and whether an update sets one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.hudi.sql import plans
from dbt.adapters.hudi.sql.targets import Target


def compared_columns(plan: plans.JavaPlan, source: Sequence[str], target: Sequence[str]) -> set[str] | None:
    """Return the lower-case columns that an ON compares and new rows take from the source; None for any other ON."""
    found = set()
    for each in _conjuncts(plan.mergeCondition()):
        if plans.kind(each) != "EqualTo":
            return None
        sides = [_parts(each.left()), _parts(each.right())]
        is_pair = any(_is_of(one, source) and _is_of(other, target) for one, other in (sides, sides[::-1]))
        if not is_pair or sides[0][-1] != sides[1][-1]:
            return None
        found.add(sides[0][-1])
    return (
        found
        if all(_takes(action, found, source) for action in plans.items(plan.notMatchedActions()))
        else None
    )


def check_keys_stay(plan: plans.JavaPlan, target: Target, record_key: Sequence[str]) -> None:
    """Raise DbtRuntimeError for an update that gives a row another key; a key set to itself is let through."""
    keys = {column.lower() for column in record_key}
    for action in (*plans.items(plan.matchedActions()), *plans.items(plan.notMatchedBySourceActions())):
        if plans.kind(action) == "UpdateAction":
            changed = {
                plans.texts(item.key().nameParts())[-1].lower() for item in plans.items(action.assignments())
            }
            on_key = [
                item
                for item in plans.items(action.assignments())
                if plans.texts(item.key().nameParts())[-1].lower() in keys
            ]
            if changed & keys and not all(_same_column(item) for item in on_key):
                raise DbtRuntimeError(
                    f"MERGE INTO {target.label} changes the record key {', '.join(record_key)}; delete the row and insert it"
                )


def _takes(action: plans.JavaPlan, columns: Collection[str], source: Sequence[str]) -> bool:
    """Tell whether rows that are inserted have the source's values in columns."""
    if plans.kind(action) == "InsertStarAction":
        return True
    taken = set()
    for item in plans.items(action.assignments()):
        value, name = _parts(item.value()), plans.texts(item.key().nameParts())[-1].lower()
        if value[-1:] == [name] and (len(value) == 1 or _is_of(value, source)):
            taken.add(name)
    return taken >= {*columns}


def _same_column(assignment: plans.JavaPlan) -> bool:
    """``key = s.key`` keeps a matched row's key."""
    value = assignment.value()
    if plans.kind(value) != "UnresolvedAttribute":
        return False
    return plans.texts(value.nameParts())[-1].lower() == plans.texts(assignment.key().nameParts())[-1].lower()


def _parts(expression: plans.JavaPlan) -> list[str]:
    """Return the parts of a column's name in lower case, none for another expression."""
    if plans.kind(expression) != "UnresolvedAttribute":
        return []
    return [each.lower() for each in plans.texts(expression.nameParts())]


def _is_of(parts: Sequence[str], side: Sequence[str]) -> bool:
    """Tell whether a name is that of a column of one side, and not of a field in a struct."""
    qualifier = [*parts[:-1]]
    return bool(qualifier) and qualifier == [each.lower() for each in side][-len(qualifier) :]


def _conjuncts(condition: plans.JavaPlan) -> Iterator[plans.JavaPlan]:
    if plans.kind(condition) == "And":
        yield from _conjuncts(condition.left())
        yield from _conjuncts(condition.right())
    else:
        yield condition

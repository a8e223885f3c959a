"""DEFAULT as a value in INSERT, UPDATE and MERGE: null, the default of every column of a Hudi table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from hudi_engine.spark.jvm import plans
from hudi_engine.spark.sql.statement import Statement, Target, data_columns

_WORD = re.compile(r"\bdefault\b", re.IGNORECASE)
_ABOVE_VALUES = ("SubqueryAlias", "UnresolvedSubqueryColumnAliases", "Project")


def with_null_for_default(statement: Statement, target: Target) -> Statement:
    """Return a statement that says null where it said DEFAULT.

    Args:
        target: Its table; where that has a column of the name, the word is that column.
    """
    text = statement.text
    if not _WORD.search(text):
        return statement
    spans = [plans.source_range(node) for node in _values(statement)]
    found = sorted(span for span in spans if span is not None and _WORD.fullmatch(text[slice(*span)]))
    if not found or "default" in map(str.lower, data_columns(statement.table(target)).names):
        return statement
    for start, end in reversed(found):
        text = f"{text[:start]}null{text[end:]}"
    plan = plans.parse(statement.session, text)
    if statement.ctes is not None:
        return replace(statement, text=text, plan=plan.child(), ctes=plan)
    return replace(statement, text=text, plan=plan)


def _values(statement: Statement) -> Iterator[plans.JavaPlan]:
    """Yield the expressions that may be DEFAULT."""
    plan = statement.plan
    if statement.kind == "MergeIntoTable":
        actions = (plan.matchedActions(), plan.notMatchedActions(), plan.notMatchedBySourceActions())
        for action in (each for kind in actions for each in plans.items(kind)):
            if plans.hasattr_java(action, "assignments"):
                yield from (item.value() for item in plans.items(action.assignments()))
    elif statement.kind == "UpdateTable":
        yield from (item.value() for item in plans.items(plan.assignments()))
    elif plans.hasattr_java(plan, "query"):
        yield from _rows(plan.query())


def _rows(query: plans.JavaPlan) -> Iterator[plans.JavaPlan]:
    """Yield the values of VALUES and of a SELECT without FROM."""
    kind = plans.kind(query)
    if kind == "UnresolvedInlineTable":
        for row in plans.items(query.rows()):
            yield from plans.items(row)
    elif kind == "Project" and plans.kind(query.child()) == "OneRowRelation":
        yield from plans.items(query.projectList())
    elif kind in _ABOVE_VALUES:
        yield from _rows(query.child())
    elif kind == "Union":
        for each in plans.items(query.children()):
            yield from _rows(each)

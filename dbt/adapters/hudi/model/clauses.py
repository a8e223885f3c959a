"""The clauses of a merge: what becomes of rows that match, and of those on either side that do not."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hudi_engine.spark.sql.statements import split_outside
from hudi_engine.spark.write.rows.clauses import ACTIONS, MergeClauses, When
from hudi_engine.spark.write.rows.settled import DELETE, UPDATE
from hudi_engine.spark.write.rows.sides import SOURCE, TARGET, ClauseRows

from dbt.adapters.hudi.model.known_configs import CLAUSES
from dbt.adapters.hudi.model.reading import Problems, boolean, mapping, names

_UPDATE = re.compile(r"\s*update\s+set\s+(?P<items>.+)", re.IGNORECASE | re.DOTALL)
CONFIGS: Mapping[str, str] = {
    "on": "incremental_predicates",
    "update_set": "merge_update_set_expressions",
    "by_source": "not_matched_by_source_action",
    "by_source_condition": "not_matched_by_source_condition",
}
"""The configs behind what the engine calls otherwise."""

_WHEN: Mapping[str, ClauseRows] = {
    "when_matched": ClauseRows.MATCHED,
    "when_not_matched": ClauseRows.NEW,
    "when_not_matched_by_source": ClauseRows.LEFT,
}
_MODES = ("by_name", "star", "explicit")
_CONFIGS_OF: Mapping[ClauseRows, tuple[str, ...]] = {
    ClauseRows.MATCHED: (
        "matched_condition",
        "skip_matched_step",
        "merge_update_set_expressions",
        "merge_update_columns",
        "merge_exclude_columns",
    ),
    ClauseRows.NEW: ("not_matched_condition", "skip_not_matched_step"),
    ClauseRows.LEFT: ("not_matched_by_source_action", "not_matched_by_source_condition"),
}

_Taken = tuple[tuple[str, ...] | None, tuple[str, ...], dict[str, str]]
_NAME = re.compile(r"[^\W\d]\w*")


def read_clauses(config: Mapping[str, object], problems: Problems) -> MergeClauses | None:
    """Return the clauses of a model's merge, None without any."""
    if not any(config.get(key) not in (None, "", {}, False) for key in CLAUSES):
        return None
    texts = {key: _text(key, config, problems) for key in CLAUSES if "condition" in key or "alias" in key}
    given = mapping("merge_update_set_expressions", config.get("merge_update_set_expressions"), problems)
    by_source = _by_source(config.get("not_matched_by_source_action"), problems)
    if texts["not_matched_by_source_condition"] and by_source is None:
        problems.add(
            "not_matched_by_source_condition is set without not_matched_by_source_action; set that to 'delete' or to "
            "'update set column = expression'"
        )
    kinds, when = _branches(config.get("merge_clauses"), problems)
    problems.extend(
        f"merge_clauses and {each} are both about rows {rows.value}; say it all in merge_clauses"
        for rows, keys in _CONFIGS_OF.items()
        for each in keys
        if rows in kinds and config.get(each) not in (None, "", {}, False)
    )
    aliases = {"source": texts["source_alias"], "target": texts["target_alias"]}
    for key, name in aliases.items():
        if name is not None and not _NAME.fullmatch(name):
            problems.add(f"{key}_alias is {name!r}; give a name of letters, digits and _")
    return MergeClauses(
        matched_condition=texts["matched_condition"],
        update_set={name: str(value) for name, value in given.items()} or None,
        skip_matched=_skips("skip_matched_step", config, problems) or ClauseRows.MATCHED in kinds,
        not_matched_condition=texts["not_matched_condition"],
        skip_not_matched=_skips("skip_not_matched_step", config, problems) or ClauseRows.NEW in kinds,
        by_source=by_source,
        by_source_condition=texts["not_matched_by_source_condition"],
        when=when,
        source=aliases["source"] or SOURCE,
        target=aliases["target"] or TARGET,
        called=CONFIGS,
    )


def _branches(value: object, problems: Problems) -> tuple[set[ClauseRows], tuple[When, ...]]:
    """Return the kinds of rows that ``merge_clauses`` is about, and its branches, in the form that dbt-duckdb has."""
    kinds, found = set(), []
    given = mapping("merge_clauses", value, problems)
    for key, of_key in given.items():
        if key not in _WHEN or not isinstance(of_key, list):
            problems.add(
                f"merge_clauses has {key!r}: {of_key!r}; legal keys, each with a list of branches: {', '.join(_WHEN)}"
            )
            continue
        rows = _WHEN[key]
        kinds.add(rows)
        for number, each in enumerate(of_key):
            branch = _branch(f"merge_clauses.{key}[{number}]", rows, each, problems)
            kinds.add(branch.rows)
            found.append(branch)
    return kinds, tuple(found)


def _branch(place: str, rows: ClauseRows, value: object, problems: Problems) -> When:
    """Return one branch; what is no part of one is refused."""
    given = mapping(place, value, problems)
    by = str(given.pop("by", None) or "target").lower()
    if rows is ClauseRows.NEW and by == "source":
        rows = ClauseRows.LEFT
    elif by not in ("target", "source") or (rows is not ClauseRows.NEW and by != "target"):
        problems.add(f"{place} has by {by!r}; legal values in when_not_matched: 'target', 'source'")
    action = str(given.pop("action", None) or "").lower()
    legal = ACTIONS[rows]
    if action not in legal:
        problems.add(f"{place} has action {action!r}; legal values: {', '.join(map(repr, legal))}")
    mode = str(given.pop("mode", None) or "by_name").lower()
    if mode not in _MODES:
        problems.add(f"{place} has mode {mode!r}; legal values: {', '.join(map(repr, _MODES))}")
    conditions = given.pop("condition", None) or []
    conditions = [conditions] if isinstance(conditions, str) else conditions
    if not isinstance(conditions, list) or not all(isinstance(each, str) for each in conditions):
        problems.add(f"{place} has condition {conditions!r}; give SQL, or a list of which all must hold")
        conditions = []
    details = mapping(f"{place}.{action}", given.pop(action, None), problems)
    if action == UPDATE:
        details.setdefault("set_expressions", given.pop("set_expressions", None))
    taken = _taken_by_insert if rows is ClauseRows.NEW else _taken_by_update
    columns, excluded, values = taken(f"{place}.{action}", details, problems)
    if values and mode == "explicit" and not excluded:
        columns = columns or ()
    for unknown in (*given, *details):
        problems.add(f"{place} has {unknown!r}, which is no part of a branch with action {action!r}")
    condition = " and ".join(f"({each})" for each in conditions) or None
    called = f"{place}.condition", f"{place}.{action}"
    return When(rows, action, condition, columns, excluded, values, called)


def _taken_by_update(place: str, details: dict[str, object], problems: Problems) -> _Taken:
    """Return the columns that take the batch's values, those that do not, and the SQL of others."""
    columns = names(f"{place}.include", details.pop("include", None), problems) or None
    excluded = names(f"{place}.exclude", details.pop("exclude", None), problems)
    values = mapping(f"{place}.set_expressions", details.pop("set_expressions", None), problems)
    return columns, excluded, {name: str(text) for name, text in values.items()}


def _taken_by_insert(place: str, details: dict[str, object], problems: Problems) -> _Taken:
    """Return the same of a new row, whose columns come with a value each; without any it takes all."""
    columns = names(f"{place}.columns", details.pop("columns", None), problems)
    texts = details.pop("values", None) or []
    if not isinstance(texts, list) or len(texts) != len(columns):
        problems.add(f"{place} has the columns {list(columns)} and values {texts!r}; give a list of as many")
        texts = []
    own = {name: (name.lower(), f"{SOURCE}.{name}".lower()) for name in columns}
    values = {
        name: str(text)
        for name, text in zip(columns, texts, strict=False)
        if str(text).lower() not in own[name]
    }
    return columns or None, (), values


def clause_sql(clauses: MergeClauses | None) -> tuple[list[str], list[str]]:
    """Return the conditions of a model's clauses, and the values that they set, as SQL."""
    branches = () if clauses is None else clauses.branches
    conditions = [each.condition for each in branches if each.condition is not None]
    return conditions, [text for each in branches for text in each.values.values()]


def _text(key: str, config: Mapping[str, object], problems: Problems) -> str | None:
    value = config.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        problems.add(f"{key} is {value!r}; give {'a name' if 'alias' in key else 'an SQL condition'}")
        return None
    return value


def _skips(key: str, config: Mapping[str, object], problems: Problems) -> bool:
    return bool(boolean(key, config.get(key), problems, False))


def _by_source(value: object, problems: Problems) -> str | dict[str, str] | None:
    """``delete``, or the columns of ``update set`` with their SQL."""
    if value is None or value == "":
        return None
    if isinstance(value, str) and value.strip().lower() == "delete":
        return DELETE
    update = _UPDATE.fullmatch(value) if isinstance(value, str) else None
    found: dict[str, str] = {}
    if update is not None:
        items = update["items"]
        for start, end in split_outside(items, 0, len(items), ","):
            column, equals, expression = items[start:end].partition("=")
            if equals and expression.strip():
                found[column.split(".")[-1].strip().strip("`")] = expression.strip()
            else:
                update = None
    if update is None:
        problems.add(
            f"not_matched_by_source_action is {value!r}; legal values: 'delete', 'update set column = expression, ...'"
        )
    return found

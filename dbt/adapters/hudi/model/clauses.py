"""The clauses of a merge as dbt-databricks and dbt-duckdb name them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hudi_engine.spark.sql.statements import split_outside
from hudi_engine.spark.write.rows.clauses import MergeClauses
from hudi_engine.spark.write.rows.settled import DELETE
from hudi_engine.spark.write.rows.sides import SOURCE, TARGET

from dbt.adapters.hudi.model.known_configs import CLAUSES
from dbt.adapters.hudi.model.reading import Problems, boolean, mapping

_UPDATE = re.compile(r"\s*update\s+set\s+(?P<items>.+)", re.IGNORECASE | re.DOTALL)
CONFIGS: Mapping[str, str] = {
    "on": "incremental_predicates",
    "update_set": "merge_update_set_expressions",
    "by_source": "not_matched_by_source_action",
    "by_source_condition": "not_matched_by_source_condition",
}
"""The configs behind what the engine calls otherwise."""

_NAME = re.compile(r"[^\W\d]\w*")


def read_clauses(config: Mapping[str, object], problems: Problems) -> MergeClauses | None:
    """Return the clauses a model asks for, None when it asks for none."""
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
    names = {"source": texts["source_alias"], "target": texts["target_alias"]}
    for key, name in names.items():
        if name is not None and not _NAME.fullmatch(name):
            problems.add(f"{key}_alias is {name!r}; give a name of letters, digits and _")
    return MergeClauses(
        matched_condition=texts["matched_condition"],
        update_set={name: str(value) for name, value in given.items()} or None,
        skip_matched=_skips("skip_matched_step", config, problems),
        not_matched_condition=texts["not_matched_condition"],
        skip_not_matched=_skips("skip_not_matched_step", config, problems),
        by_source=by_source,
        by_source_condition=texts["not_matched_by_source_condition"],
        source=names["source"] or SOURCE,
        target=names["target"] or TARGET,
        called=CONFIGS,
    )


def said_in_sql(clauses: MergeClauses | None) -> tuple[list[str], list[str]]:
    """Return the conditions of a model's clauses, and the values that they set, as SQL."""
    if clauses is None:
        return [], []
    conditions = (clauses.matched_condition, clauses.not_matched_condition, clauses.by_source_condition)
    by_source = clauses.by_source if isinstance(clauses.by_source, Mapping) else {}
    values = [*(clauses.update_set or {}).values(), *by_source.values()]
    return [each for each in conditions if each], values


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

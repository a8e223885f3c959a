"""What may be shown: queries, behind which dbt puts a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.spark.sql.statements import first_keyword

_QUERIES = frozenset(("", "select", "with", "from", "values", "table", "map", "reduce"))


def check_query(sql: str, node: Mapping[str, Any] | None = None) -> None:
    """Refuse a statement or Python model that is no query, before dbt puts a limit behind it."""
    if node is not None and node.get("language") == "python":
        name = node.get("name")
        raise DbtRuntimeError(
            f"dbt show runs a query, but {name} is a Python model, whose rows are known when it has run: dbt run -s {name}, "
            f"then dbt show --inline \"select * from {{{{ ref('{name}') }}}}\""
        )
    keyword = first_keyword(sql)
    if keyword not in _QUERIES:
        raise DbtRuntimeError(
            f"dbt show puts a limit behind a query and shows its rows, but this is {keyword.upper()}: run such a statement in "
            "a hook, or by run_query in a macro with dbt run-operation"
        )

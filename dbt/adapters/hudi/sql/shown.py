"""What may be shown: queries, behind which dbt puts a limit."""

from __future__ import annotations

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.hudi.sql.statements import first_keyword

_QUERIES = frozenset(("", "select", "with", "from", "values", "table", "map", "reduce"))


def check_query(sql: str) -> None:
    """Refuse a statement that is no query, before a limit is put behind it.

    Raises:
        DbtRuntimeError: It is none; the message says where such a statement belongs.
    """
    keyword = first_keyword(sql)
    if keyword not in _QUERIES:
        raise DbtRuntimeError(
            f"dbt show puts a limit behind a query and shows its rows, but this is {keyword.upper()}: run such a statement in "
            "a hook, or by run_query in a macro with dbt run-operation"
        )

"""A query that a test names in its WITH is that query, also under the name of the table whose place a view takes."""

from __future__ import annotations

from typing import Any

import pytest
from hudi_engine.spark.sql.query import with_view

QUERIES = {
    "a query of the WITH": (
        "with orders as (select 1 as id) select * from orders",
        "with orders as (select 1 as id) select * from orders",
    ),
    "what that query reads": (
        "with Orders as (select * from orders where id > 1) select * from ORDERS",
        "with Orders as (select * from `seen` as `orders` where id > 1) select * from ORDERS",
    ),
    "a query before it": (
        "with a as (select * from orders), orders as (select * from a), b as (select * from orders) select * from b",
        "with a as (select * from `seen` as `orders`), orders as (select * from a), b as (select * from orders) select * from b",
    ),
    "a query around it": (
        "with orders as (select 1 as id) select * from (select * from orders) where exists (select * from orders)",
        "with orders as (select 1 as id) select * from (select * from orders) where exists (select * from orders)",
    ),
    "beside the WITH": (
        "select * from (with orders as (select 1 as id) select * from orders) join orders o using (id)",
        "select * from (with orders as (select 1 as id) select * from orders) join `seen` o using (id)",
    ),
    "with its schema": (
        "with orders as (select 1 as id) select * from s.orders join orders using (id)",
        "with orders as (select 1 as id) select * from `seen` as `orders` join orders using (id)",
    ),
}


@pytest.mark.parametrize("where", QUERIES)
def test_a_name_of_a_with_is_no_table(spark: Any, where: str) -> None:
    query, expected = QUERIES[where]

    assert with_view(spark, query, lambda parts: parts[-1].lower() == "orders", "seen") == expected

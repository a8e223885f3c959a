"""The examples of models of the documentation, run over inserts, updates and deletes and compared with pandas."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from dbt.tests.util import run_dbt

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXAMPLE = re.compile(r"```sql\n(?:-- (?:models/)?(\w+)\.sql[^\n]*\n)?(\{\{ config\(.*?)```", re.DOTALL)
CONDITION = "if(amount > 0, c._change_type, 'delete') as _change_type"


def examples(page: str) -> dict[str, str]:
    """The models of a page by their names; those without one are numbered."""
    found = EXAMPLE.findall((DOCS / page).read_text("utf-8"))
    return {name or f"example_{number}": sql for number, (name, sql) in enumerate(found, 1)}


def rows(project: Any, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in project.run_sql(query, fetch="all")]


def tuples(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    ordered = frame.sort_values(list(frame.columns[:1])).astype(object)
    return [tuple(row) for row in ordered.where(ordered.notna(), None).itertuples(index=False)]


def values(frame: pd.DataFrame) -> str:
    """A frame as SQL."""
    listed = ", ".join(f"({', '.join(map(repr, row))})" for row in frame.itertuples(index=False, name=None))
    return f"select * from values {listed} as t ({', '.join(frame.columns)})"


ORDERS = pd.DataFrame(
    [(1, 7, 10), (2, 7, 20), (3, 8, 30), (4, 7, 40)], columns=["order_id", "customer_id", "amount"]
)
CUSTOMERS = pd.DataFrame([(7, "de"), (8, "fr")], columns=["customer_id", "country"])
CHANGES = """
update {schema}.orders set amount = 11 where order_id = 1;
update {schema}.orders set customer_id = 9 where order_id = 2;
insert into {schema}.orders values (5, 9, 50), (6, null, 60);
update {schema}.orders set amount = 0 where order_id = 4;
delete from {schema}.orders where order_id = 3;
update {schema}.customers set country = 'at' where customer_id = 7;
insert into {schema}.customers values (9, 'it');
delete from {schema}.customers where customer_id = 8
"""


class TestExamplesOfChanges:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        table = "{{ config(materialized='table', unique_key='KEY') }} "
        page = examples("changes.md")
        assert list(page) == ["example_1", "example_2"], "each example is checked below"
        assert CONDITION in (DOCS / "changes.md").read_text("utf-8")
        return {
            "orders.sql": table.replace("KEY", "order_id") + values(ORDERS),
            "customers.sql": table.replace("KEY", "customer_id") + values(CUSTOMERS),
            **{f"{name}.sql": sql for name, sql in page.items()},
            "conditional.sql": "{{ config(materialized='incremental', unique_key='order_id') }} "
            f"select order_id, amount, {CONDITION} from {{{{ hudi_changes(ref('orders')) }}}} c",
        }

    def test_they_follow_their_inputs(self, project: Any) -> None:
        def check(joined: list[tuple[Any, ...]], orders: pd.DataFrame) -> None:
            assert (
                rows(project, "select order_id, amount, country from {schema}.example_1 order by 1") == joined
            )
            counts = orders.groupby("customer_id", as_index=False)["order_id"].count()
            assert rows(project, "select customer_id, orders from {schema}.example_2 order by 1") == tuples(
                counts
            )
            positive = orders[orders["amount"] > 0][["order_id", "amount"]]
            assert rows(project, "select order_id, amount from {schema}.conditional order by 1") == tuples(
                positive
            )

        def joined(orders: pd.DataFrame, customers: pd.DataFrame) -> pd.DataFrame:
            both = orders.merge(customers, "left", on="customer_id")
            return both[["order_id", "amount", "country"]]

        run_dbt(["run"])
        before = joined(ORDERS, CUSTOMERS)
        check(tuples(before), ORDERS)
        for statement in CHANGES.split(";"):
            project.run_sql(statement)
        run_dbt(["run", "--exclude", "orders", "customers"])
        columns = list(ORDERS.columns)
        orders = pd.DataFrame(
            rows(project, f"select {', '.join(columns)} from {{schema}}.orders"), columns=columns
        )
        customers = pd.DataFrame(
            rows(project, "select * from {schema}.customers"), columns=["customer_id", "country"]
        )
        changed = orders.merge(ORDERS, "left", indicator=True).query("_merge == 'left_only'")["order_id"]
        now = joined(orders, customers)
        kept = before[before["order_id"].isin(orders["order_id"]) & ~before["order_id"].isin(changed)]
        check(tuples(pd.concat([kept, now[now["order_id"].isin(changed)]])), orders)


INPUTS = {
    "order_changes": ("order_id", "amount", "updated_at", "op"),
    "landed_prices": ("product_id", "price"),
    "unsubscribed": ("subscriber_id", "reason"),
    "events": ("event_id", "happened_at", "kind"),
    "orders": ("order_id", "amount", "order_date"),
    "order_events": ("order_id", "customer_id", "updated_at"),
    "deliveries": ("product_id", "status", "amount"),
}
FIRST = {
    "order_changes": [(1, 10, 1, "I"), (1, 11, 2, "U"), (2, 20, 3, "D"), (2, 20, 1, "I"), (3, 30, 1, "I")],
    "landed_prices": [(1, 5), (2, 6)],
    "unsubscribed": [(1, "none")],
    "events": [
        (1, "2026-01-01 10:00:00", "a"),
        (2, "2026-01-02 10:00:00", "b"),
        (3, "2026-01-02 11:00:00", "c"),
    ],
    "orders": [
        (1, 5, "2026-01-01"),
        (2, 6, "2026-01-04"),
        (3, 7, "2026-01-04"),
        (4, 8, "2026-01-05"),
        (5, 9, "2026-01-06"),
    ],
    "order_events": [(1, 7, 10), (2, 7, 11), (3, 8, 12)],
    "deliveries": [(1, "new", 5), (2, "new", 6), (3, "sold", 7)],
}
SECOND = {
    "order_changes": [
        (3, 31, 4, "U"),
        (3, 31, 5, "D"),
        (4, 40, 4, "I"),
        (1, 12, 4, "U"),
        (1, 0, 5, "U"),
        (2, 21, 6, "I"),
    ],
    "landed_prices": [(1, 7), (3, 8)],
    "unsubscribed": [(2, "moved"), (5, "unknown")],
    "events": [
        (1, "2026-01-01 10:00:00", "x"),
        (3, "2026-01-02 11:00:00", "c"),
        (4, "2026-01-03 09:00:00", "d"),
    ],
    "orders": [
        (1, 99, "2026-01-01"),
        (2, 60, "2026-01-04"),
        (4, 8, "2026-01-05"),
        (6, 1, "2026-01-05"),
        (7, 2, "2026-01-07"),
    ],
    "order_events": [(1, 7, 10), (4, 7, 20), (5, 9, 21)],
    "deliveries": [(1, "sold", 10), (2, "discontinued", 0), (4, "discontinued", 1), (5, "new", 2)],
}
PAGES = ("strategies.md", "microbatch.md", "deletes.md")
QUERIES = {
    "current_orders": "select order_id, amount from {schema}.current_orders order by 1",
    "open_orders": "select order_id, amount from {schema}.open_orders order by 1",
    "prices": "select product_id, price from {schema}.prices order by 1",
    "subscribers": "select subscriber_id from {schema}.subscribers order by 1",
    "daily_events": "select event_id, cast(happened_at as string), kind from {schema}.daily_events order by 1",
    "daily_revenue": "select cast(order_date as string), revenue, orders from {schema}.daily_revenue order by 1",
    "customers": "select customer_id, first_seen, last_seen, last_order_id from {schema}.customers order by 1",
    "stock": "select product_id, status, amount from {schema}.stock order by 1",
}


def state(rows_of: dict[str, Any]) -> dict[str, pd.DataFrame]:
    return {name: pd.DataFrame(rows_of[name], columns=list(columns)) for name, columns in INPUTS.items()}


def revenue(orders: pd.DataFrame) -> pd.DataFrame:
    return orders.groupby("order_date", as_index=False).agg(
        revenue=("amount", "sum"), orders=("amount", "count")
    )


def customers(events: pd.DataFrame) -> pd.DataFrame:
    last = (
        events.sort_values("updated_at")
        .groupby("customer_id")
        .agg(
            first_seen=("updated_at", "min"),
            last_seen=("updated_at", "max"),
            last_order_id=("order_id", "last"),
        )
    )
    return last.reset_index()


class TestExamplesOfModels:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        page = {name: sql for each in PAGES for name, sql in examples(each).items()}
        assert sorted(page) == sorted(QUERIES), "each example is checked below"
        inputs = {name: f"select * from {{{{ target.schema }}}}.in_{name}" for name in INPUTS}
        inputs["events"] = (
            "{{ config(event_time='happened_at') }} select event_id, cast(happened_at as timestamp) "
        )
        inputs["events"] += "as happened_at, kind from {{ target.schema }}.in_events"
        inputs["orders"] = (
            "select order_id, amount, cast(order_date as date) as order_date from {{ target.schema }}.in_orders"
        )
        source = "{name: order_events, identifier: in_order_events}"
        return {
            "sources.yml": f"sources: [{{name: shop, schema: '{{{{ target.schema }}}}', tables: [{source}]}}]",
            **{f"{name}.sql": sql for name, sql in (inputs | page).items()},
        }

    def run(self, project: Any, inputs: dict[str, pd.DataFrame]) -> dict[str, list[tuple[Any, ...]]]:
        for name, frame in inputs.items():
            project.run_sql(f"create or replace view {{schema}}.in_{name} as {values(frame)}")
        run_dbt(["run", "--event-time-start", "2026-01-01", "--event-time-end", "2026-01-04"])
        return {name: rows(project, query) for name, query in QUERIES.items()}

    def test_they_follow_their_inputs(self, project: Any) -> None:
        first, second = state(FIRST), state(SECOND)
        subscribers: list[tuple[Any, ...]] = []
        stock = FIRST["deliveries"]

        def expected(feed: pd.DataFrame, now: dict[str, pd.DataFrame]) -> dict[str, list[tuple[Any, ...]]]:
            newest = feed.sort_values("updated_at").groupby("order_id").tail(1)
            there = newest[newest["op"] != "D"][["order_id", "amount"]]
            return {
                "current_orders": tuples(there),
                "open_orders": tuples(there[there["amount"] > 0]),
                "prices": tuples(now["landed_prices"]),
                "subscribers": subscribers,
                "daily_events": tuples(now["events"]),
                "daily_revenue": tuples(revenue(now["orders"])),
                "customers": tuples(customers(now["order_events"])),
                "stock": stock,
            }

        assert self.run(project, first) == expected(first["order_changes"], first)
        project.run_sql("insert into {schema}.subscribers values (2), (3)")
        subscribers = [(3,)]
        # one is sold once more, one goes, one was not delivered, and of two new ones the discontinued one stays away
        stock = [(1, "sold", 15), (3, "unknown", 7), (5, "new", 2)]
        want = expected(pd.concat([first["order_changes"], second["order_changes"]]), second)
        # a day behind the window keeps its row, and so does one without orders, as the page has it
        old, new = revenue(first["orders"]), revenue(second["orders"])
        kept = old[(old["order_date"] < "2026-01-03") | ~old["order_date"].isin(new["order_date"])]
        want["daily_revenue"] = tuples(pd.concat([kept, new[new["order_date"] >= "2026-01-03"]]))
        # a customer without events stays, and one that is there keeps what merge_update_columns does not name
        seen, now = customers(first["order_events"]), customers(second["order_events"])
        now["first_seen"] = (
            now["customer_id"].map(seen.set_index("customer_id")["first_seen"]).fillna(now["first_seen"])
        )
        now = now.astype("int64")
        want["customers"] = tuples(pd.concat([now, seen[~seen["customer_id"].isin(now["customer_id"])]]))
        assert self.run(project, second) == want
        operation, arguments = re.findall(
            r'dbt run-operation (\w+) --args "([^"]*)"', (DOCS / "deletes.md").read_text("utf-8")
        )[0]
        project.run_sql("insert into {schema}.current_orders values (3, 30, 7)")
        named = arguments.replace("table: current", f"table: {project.test_schema}.current")
        run_dbt(["run-operation", operation, "--args", named])
        assert rows(project, "select * from {schema}.current_orders where order_id = 3") == [(3, None, 7)]

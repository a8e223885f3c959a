"""The models and the profile that the documentation shows are built as they stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from dbt.tests.util import run_dbt

from dbt.adapters.hudi.credentials import HudiCredentials

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md"))]
MODEL = re.compile(r"```sql\n-- models/([\w/]+\.sql)\n(.*?)```", re.DOTALL)
PROFILE = re.compile(r"```yaml\n(?:# profiles\.yml\n)?(\w+:\n  target:.*?)```", re.DOTALL)
FILE = re.compile(r"```\w+\n# ([\w/]+\.(?:py|yml))\n(.*?)```", re.DOTALL)
QUICK_START = dict(FILE.findall((ROOT / "docs/quickstart.md").read_text("utf-8")))
LATER = {
    "order_id": [1, 2, 3],
    "customer_id": [7, 7, 8],
    "amount": [10.5, 3.5, 1.0],
    "status": ["shipped", "new", "new"],
    "order_date": ["2026-01-01", "2026-01-01", "2026-01-02"],
    "updated_at": ["11:00", "09:55", "11:02"],
}


def snippets(pattern: re.Pattern[str]) -> list[tuple[str, ...]]:
    found = [match.groups() for page in PAGES for match in pattern.finditer(page.read_text("utf-8"))]
    assert found, pattern.pattern
    return found


def test_the_profiles_are_legal() -> None:
    for (text,) in snippets(PROFILE):
        ((profile,),) = [[target["outputs"]["dev"] for target in yaml.safe_load(text).values()]]
        profile = {key: value for key, value in profile.items() if key not in ("type", "threads")}
        HudiCredentials.validate(HudiCredentials.translate_aliases(profile))


class TestModelsOfThePages:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        deliveries = "select 1 as product_id, 'new' as status, 2 as amount"
        inputs = {"sources.yml": QUICK_START["models/sources.yml"], "deliveries.sql": deliveries}
        return {**inputs, **dict(snippets(MODEL))}

    def test_they_do_what_the_page_says(self, project: Any) -> None:
        subprocess.run([sys.executable, "-c", QUICK_START["land.py"]], cwd=project.project_root, check=True)
        run_dbt(["run"])
        pq.write_table(pa.table(LATER), project.project_root / "landing" / "order_events" / "2.parquet")
        run_dbt(["run"])

        def rows(query: str) -> list[tuple[Any, ...]]:
            return [tuple(row) for row in project.run_sql(query, fetch="all")]

        merged = [(1, "shipped"), (2, "paid"), (3, "new")]
        assert rows("select order_id, status from {schema}.orders order by 1") == merged
        assert rows("select order_id, status from {schema}.orders_live_ro order by 1") == merged
        assert rows("select cast(revenue as double), orders from {schema}.daily_revenue order by order_date") == [
            (14.0, 2), (1.0, 1),
        ]  # fmt: skip
        assert rows("select customer_id, last_order_id from {schema}.customers order by 1") == [
            (7, 1),
            (8, 3),
        ]
        loaded = [(1, "shipped"), (2, "new"), (3, "new")]
        assert rows("select order_id, status from {schema}.loaded_events order by 1") == loaded
        assert rows("select order_id, status from {schema}.events_by_file order by 1, 2") == [
            (1, "new"), (1, "shipped"), (2, "new"), (2, "paid"), (3, "new"),
        ]  # fmt: skip
        assert rows("select cast(order_date as string), orders from {schema}.orders_by_day order by 1") == [
            ("2026-01-01", 4), ("2026-01-02", 1),
        ]  # fmt: skip
        assert rows("select product_id, status, amount from {schema}.stock") == [(1, "new", 4)]


ORDERS = """
create table sales.orders using hudi partitioned by (order_date) tblproperties (primaryKey = 'id') as
select * from values (1, 7, 'new', '2024-01-01'), (2, 7, 'new', '2024-02-01'), (3, 8, 'new', '2025-02-01') as t
(id, customer, status, order_date)
"""


class TestStatementsOfThePage:
    def test_statements_change_the_rows_they_name(self, project: Any) -> None:
        (block,) = re.findall(r"```sql\n(delete.*?)```", (ROOT / "docs/sql.md").read_text("utf-8"), re.DOTALL)
        inputs = [
            "create schema sales",
            ORDERS,
            "create table sales.customers using hudi as select 7 as c, 7 as id",
        ]
        for statement in (*inputs, *block.strip().split(";\n")):
            project.run_sql(statement.rstrip(";\n"))
        found = project.run_sql("select id, status, order_date from sales.orders", fetch="all")
        assert [tuple(row) for row in found] == [(2, "closed", "2024-02-01")]

"""The models and the profile that the documentation shows are built as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.tests.util import run_dbt

from dbt.adapters.hudi.credentials import HudiCredentials

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MODEL = re.compile(r"```sql\n-- models/([\w/]+\.sql)\n(.*?)```", re.DOTALL)
PROFILE = re.compile(r"```yaml\n(?:# profiles\.yml\n)?(\w+:\n  target:.*?)```", re.DOTALL)
EVENTS = """order_id,customer_id,order_date,amount,updated_at,status
1,7,2026-01-01,10.5,2026-01-01 10:00:00,new
2,7,2026-01-01,3.5,2026-01-01 10:05:00,paid
"""
LATER = """order_id,customer_id,order_date,amount,updated_at,status
1,7,2026-01-01,10.5,2026-01-01 11:00:00,shipped
2,7,2026-01-01,3.5,2026-01-01 09:55:00,new
3,8,2026-01-02,1.0,2026-01-02 11:02:00,new
"""
SHOP = "sources: [{name: shop, schema: '{{ target.schema }}', tables: [{name: order_events}]}]"


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
        return {"sources.yml": SHOP, **dict(snippets(MODEL))}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        types = "{order_date: date, amount: 'decimal(10,2)', updated_at: timestamp}"
        config = f"seeds: [{{name: order_events, config: {{column_types: {types}}}}}]"
        return {"order_events.csv": EVENTS, "seeds.yml": config}

    def test_they_do_what_the_page_says(self, project: Any) -> None:
        run_dbt(["seed"])
        run_dbt(["run"])
        (project.project_root / "seeds" / "order_events.csv").write_text(LATER, "utf-8")
        run_dbt(["seed"])
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

"""The quick start that Apache Hudi's guides have: eight rows in four partitions, then the update of ``id1``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

PEOPLE = """
id1,Danny,23,1970-01-01 00:00:01,par1
id2,Stephen,33,1970-01-01 00:00:02,par1
id3,Julian,53,1970-01-01 00:00:03,par2
id4,Fabian,31,1970-01-01 00:00:04,par2
id5,Sophia,18,1970-01-01 00:00:05,par3
id6,Emma,20,1970-01-01 00:00:06,par3
id7,Bob,44,1970-01-01 00:00:07,par4
id8,Han,56,1970-01-01 00:00:08,par4
""".strip()
UPDATE = "id1,Danny,27,1970-01-01 00:00:01,par1"
HEADER = "uuid,name,age,ts,part\n"
MODEL = """
{{ config(materialized='incremental', unique_key='uuid', precombine_field='ORDER', partition_by=['part'], table_type='TYPE') }}
select uuid, name, cast(age as int) as age, cast(ts as timestamp) as ts, part from {{ ref('people') }}
"""


class TestQuickStart:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"people.csv": HEADER + PEOPLE}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        made = {
            f"{name}_{kind}.sql": MODEL.replace("TYPE", kind).replace("ORDER", order)
            for kind in ("cow", "mor")
            for name, order in (("by_ts", "ts"), ("by_partition", "part"))
        }
        return made

    def test_eight_rows_in_four_partitions_and_the_update_of_one(self, project: Any) -> None:
        run_dbt(["build"])
        rows = [tuple(line.split(",")) for line in PEOPLE.splitlines()]
        tables = [f"{name}_{kind}" for name in ("by_ts", "by_partition") for kind in ("cow", "mor")]
        for table in tables:
            place = Path(project.project_root) / "warehouse" / project.test_schema / table
            assert sorted(each.name for each in place.glob("part=*")) == [f"part=par{n}" for n in range(1, 5)]
            assert self.rows(project, table) == rows

        (Path(project.project_root) / "seeds" / "people.csv").write_text(f"{HEADER}{UPDATE}\n")
        run_dbt(["seed", "--full-refresh"])
        run_dbt(["run"])
        for table in tables:
            assert self.rows(project, table) == [tuple(UPDATE.split(",")), *rows[1:]], table

    def rows(self, project: Any, table: str) -> list[tuple[str, ...]]:
        query = f"select uuid, name, string(age), string(ts), part from {{schema}}.{table} order by uuid"
        return [tuple(row) for row in project.run_sql(query, fetch="all")]

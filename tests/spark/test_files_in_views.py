"""Views over files that are named by their path: every later process finds them, wherever it runs."""

from __future__ import annotations

import pytest
from hudi_engine.spark.jvm import plans
from hudi_engine.spark.sql.file_reads import with_absolute_files


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select * from parquet.`landing/orders`", "select * from parquet.`/project/landing/orders`"),
        ("select * from CSV . `a b/*.csv` x", "select * from CSV.`/project/a b/*.csv` x"),
        ("select * from json.`a``b`, json.`c`", "select * from json.`/project/a``b`, json.`/project/c`"),
        (
            "with w as (select * from text.`t`) select (select max(id) from avro.`u`) from w",
            "with w as (select * from text.`/project/t`) select (select max(id) from avro.`/project/u`) from w",
        ),
        *(
            (same, same)
            for same in (
                "select * from json.`/lake/a`, text.`s3a://b/c`",
                "select * from orc.`notes`",
                "select * from `landing`.`orders`",
                "select json.`name`, 'csv.`x`' as t /* text.`y` */ from events json -- avro.`z`",
            )
        ),
    ],
)
def test_files_are_named_from_the_root_and_nothing_else(spark, query, expected):
    for head in ("create view v as ", "alter view v as "):
        sql = head + query
        plan = plans.parse(spark, sql)
        asked: list[str] = []

        def is_schema(name: str, asked: list[str] = asked) -> bool:
            asked.append(name)
            return name == "orc"

        assert with_absolute_files(sql, plan, "/project", is_schema) == head + expected
        assert bool(asked) == (expected != query or "orc" in query), (
            "a catalog is asked where a file is named"
        )
        assert with_absolute_files(sql, plan, None, is_schema) == sql

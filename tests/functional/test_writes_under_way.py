"""Models that follow an input while an older write of it is still under way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from hudi_engine.changes.checkpoint import read_checkpoint

from tests.functional.test_changes import Chain

INPUT = """
{{ config(materialized='incremental', incremental_strategy='append', partition_by=['day']) }}
select cast(id as int) as id, cast(0 as int) as day from range(2)
"""
LOG = """
{{ config(materialized='incremental', incremental_strategy='append') }}
select id, day from {{ hudi_changes(ref('orders'), begin=var('begin', none), end=var('end', none)) }}
"""


@contextmanager
def under_way(chain: Chain, table: str, instant: str) -> Iterator[None]:
    """Let a write be one that has not completed yet."""
    done = next((Path(chain.base(table)) / ".hoodie").glob(f"{instant}.*commit"))
    aside = done.with_name("aside")
    done.rename(aside)
    try:
        yield
    finally:
        aside.rename(done)


class TestFirstRunsBesideWritesUnderWay:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": INPUT, "log.sql": LOG}

    @pytest.fixture(scope="class")
    def chain(self, project: Any) -> Chain:
        run_dbt(["run", "-s", "orders"])
        chain = Chain(project)
        # in a file group of its own, as another writer makes it meanwhile
        chain.sql("insert into orders values (10, 1), (11, 1)")
        return chain

    @pytest.mark.parametrize("given", ["", "end", "begin"])
    def test_no_row_is_taken_before_the_first_write_is_there_and_none_twice(
        self, chain: Chain, given: str
    ) -> None:
        first, second = (each.requested_time for each in chain.state("orders").timeline.completed_writes)
        said = {"": "{}", "end": f"{{end: '{second}'}}", "begin": "{begin: '2020-01-01'}"}[given]
        with under_way(chain, "orders", first):
            for refresh in (["--full-refresh"], []):
                run_dbt(["run", "-s", "log", "--vars", said, *refresh])
                assert chain.rows("log", "id") == []
                assert read_checkpoint(chain.state("log")) == {}, "nothing was taken"
        for _ in range(2):
            run_dbt(["run", "-s", "log"])
            assert chain.rows("log", "id") == [(0,), (1,), (10,), (11,)]
        assert set(read_checkpoint(chain.state("log")).values()) == {second}

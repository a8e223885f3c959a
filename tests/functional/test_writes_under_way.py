"""Models that follow an input while an older write of it is still under way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from hudi_engine.table.changes.checkpoint import read_checkpoint

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
def under_way(chain: Chain, table: str, instant: str) -> Iterator[tuple[Path, Path]]:
    """Let a write be one that has not completed yet; tells where its last file is, and where it belongs."""
    done = next((Path(chain.base(table)) / ".hoodie").glob(f"{instant}.*commit"))
    aside = done.with_name("aside")
    done.rename(aside)
    try:
        yield aside, done
    finally:
        if aside.exists():
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


LATEST = "{{ config(materialized='table') }} select id from {{ hudi_as_of(TABLE, 'latest') }}"
BETWEEN = """
import os
def model(dbt, session):
    first = dbt.ref("first")
    os.rename(os.environ["WRITE_UNDER_WAY"], os.environ["WRITE_DONE"])
    return first
"""
NOTHING_YET = "api.Relation.create(schema=target.schema, identifier='nothing_yet')"


class TestTheLatestStateOfARun:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        again = "-- depends_on: {{ ref('between') }}\n"
        fills = "{{ config(post_hook='insert into {{ target.schema }}.nothing_yet values (1)') }}"
        return {
            "orders.sql": INPUT,
            "first.sql": LATEST.replace("TABLE", "ref('orders')"),
            "between.py": BETWEEN,
            "again.sql": again + LATEST.replace("TABLE", "ref('orders')"),
            "empty.sql": fills + LATEST.replace("TABLE", NOTHING_YET),
            "empty_again.sql": "-- depends_on: {{ ref('empty') }}\n" + LATEST.replace("TABLE", NOTHING_YET),
        }

    def test_a_write_that_completes_behind_the_newest_is_seen_by_no_later_node(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run_dbt(["run", "-s", "orders"])
        chain = Chain(project)
        chain.sql("insert into orders values (10, 1)")
        chain.sql("insert into orders values (20, 2)")
        late = chain.state("orders").timeline.completed_writes[1].requested_time
        with under_way(chain, "orders", late) as (aside, done):
            monkeypatch.setenv("WRITE_UNDER_WAY", str(aside))
            monkeypatch.setenv("WRITE_DONE", str(done))
            run_dbt(["run", "-s", "first", "between", "again"])
        assert late in {each.requested_time for each in chain.state("orders").timeline.completed_writes}
        assert chain.rows("first", "id") == chain.rows("again", "id") == [(0,), (1,), (20,)]

    def test_a_table_without_commits_stays_so_for_the_run(self, project: Any) -> None:
        project.run_sql(f"create table {project.test_schema}.nothing_yet (id int) using hudi")
        run_dbt(["run", "-s", "empty", "empty_again"])
        chain = Chain(project)
        assert chain.rows("nothing_yet", "id") == [(1,)]
        assert chain.rows("empty", "id") == chain.rows("empty_again", "id") == []

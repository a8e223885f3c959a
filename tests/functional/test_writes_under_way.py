"""Models that follow an input while an older write of it is still under way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
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
KEYED = """
{{ config(materialized='incremental', unique_key='id', table_type='mor', archive=false, clean=false) }}
select 1 as id, {{ var('n', 0) }} as n
"""
COMPACTS = """
-- depends_on: {{ ref('before') }}
{% set keyed = target.schema ~ '.keyed' %}
{{ config(materialized='table', post_hook=[
    "update " ~ keyed ~ " set n = 7", "{{ hudi_compact('" ~ keyed ~ "') }}",
    "update " ~ keyed ~ " set n = 8", "{{ hudi_compact('" ~ keyed ~ "') }}",
    "{{ hudi_clean('" ~ keyed ~ "', retain_commits=1) }}",
]) }}
select 1 as id
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
            "keyed.sql": KEYED,
            "before.sql": LATEST.replace("TABLE", "ref('keyed')"),
            "compacts.sql": COMPACTS,
            "after.sql": "-- depends_on: {{ ref('compacts') }}\n" + LATEST.replace("TABLE", "ref('keyed')"),
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

    def test_one_that_compaction_and_clean_take_away_ends_the_run_by_name(self, project: Any) -> None:
        for number in range(2):
            run_dbt(["run", "-s", "keyed", "--vars", f"{{n: {number}}}"])
        results = run_dbt(["run", "-s", "before", "compacts", "after"], expect_pass=False)
        assert [str(each.status) for each in results] == ["success", "success", "error"]
        assert "the state 'latest' that this run began with cannot be read any more" in results[-1].message

    def test_a_table_without_commits_stays_so_for_the_run(self, project: Any) -> None:
        project.run_sql(f"create table {project.test_schema}.nothing_yet (id int) using hudi")
        run_dbt(["run", "-s", "empty", "empty_again"])
        chain = Chain(project)
        assert chain.rows("nothing_yet", "id") == [(1,)]
        assert chain.rows("empty", "id") == chain.rows("empty_again", "id") == []


CHANGED = """
{{ config(materialized='incremental', incremental_strategy='append') }}
select cast(1 as int) as id {{ ', 2 as biggest' if is_incremental() }}
"""
LOGGED = """
{{ config(materialized='incremental', unique_key='id', table_type='mor') }} select 1 as id
"""
AMEND = """
{% macro amend() %}{% do run_query('delete from ' ~ target.schema ~ '.changed') %}{% endmacro %}
"""


class TestWhatIsNamedBeforeItHarms:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        missing = "select * from {{ source('nowhere', 'noext') }}"
        sources = "sources: [{name: nowhere, tables: [{name: noext}]}]"
        return {
            "orders.sql": INPUT,
            "log.sql": LOG,
            "changed.sql": CHANGED,
            "logged.sql": LOGGED,
            "missing.sql": missing,
            "s.yml": sources,
        }

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"amend.sql": AMEND}

    @pytest.fixture(scope="class")
    def chain(self, project: Any) -> Chain:
        run_dbt(["run", "-s", "orders", "changed"])
        return Chain(project)

    def test_a_write_of_another_process_is_named_at_the_start(self, chain: Chain) -> None:
        chain.sql("insert into orders values (10, 1)")
        last = chain.state("orders").timeline.completed_writes[-1].requested_time
        with under_way(chain, "orders", last):
            _, said = run_dbt_and_capture(["run", "-s", "orders"])
        assert f"orders is being written to by another process: commit {last} (process unknown)" in said

    def test_a_restore_names_the_models_that_have_taken_what_it_removes(self, chain: Chain) -> None:
        first = chain.state("orders").timeline.completed_writes[-1].requested_time
        run_dbt(["run", "-s", "log"])
        arguments = f"{{table: {chain.project.test_schema}.orders, instant: '{first}'"
        restore = ["run-operation", "hudi_restore", "--args"]
        assert "has taken changes" not in run_dbt_and_capture([*restore, f"{arguments}, dry_run: true}}"])[1]
        chain.sql("insert into orders values (11, 1)")
        run_dbt(["run", "-s", "log"])
        for more in (", dry_run: true}", "}"):
            said = run_dbt_and_capture([*restore, arguments + more])[1]
            assert ".log has taken changes that are removed" in said

        (result,) = run_dbt(["run", "-s", "log"], expect_pass=False)
        assert result.message.count("on_gap=") == 2 and "Choose" not in result.message

    def test_a_column_that_is_left_out_is_named(self, chain: Chain) -> None:
        said = run_dbt_and_capture(["run", "-s", "changed"])[1]
        assert "changed: biggest of the query is not in the table" in said

    def test_a_statement_of_an_operation_shows_its_rows(self, chain: Chain) -> None:
        run_dbt(["run", "-s", "changed", "--full-refresh"])
        assert "-1 rows" in run_dbt_and_capture(["run-operation", "amend"])[1]

    def test_a_source_that_is_no_table_names_what_to_set(self, chain: Chain) -> None:
        (result,) = run_dbt(["run", "-s", "missing"], expect_pass=False)
        assert "nowhere.noext is a source and no table of the warehouse: build it, or set" in result.message

    def test_a_table_of_logs_without_compaction_is_named_once(self, chain: Chain) -> None:
        said = "".join(run_dbt_and_capture(["run", "-s", "logged"])[1] for _ in range(7))
        assert said.count("logged has 5 delta commits and no compaction") == 1

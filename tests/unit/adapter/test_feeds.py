"""Models that take changes: their strategies, their inputs and the tables that they name."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.config.own_keys import CHECKPOINT, CHECKPOINT_BEFORE
from hudi_engine.format.storage.base import FileStatus
from hudi_engine.table.changes.new_files import TakenFiles

from dbt.adapters.hudi.model.selected import check_takes_changes, tables_named, takes_changes
from dbt.adapters.hudi.run import OF_A_SAMPLE, Feed, InputWindow
from tests.unit.adapter.test_model_config import plan


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("select * from {{ hudi_changes(ref('a')) }} c", "hudi_changes"),
        ("select * from {{ hudi_new_files(source('a', 'b')) }}", "hudi_new_files"),
        ("{% set c = dbt_hudi.hudi_changes (ref('a')) %} select * from {{ c }}", "hudi_changes"),
        ("select 1 -- no hudi_changes() here", None),
        ("{# hudi_changes(ref('a')) #} select '{{ x }} hudi_changes(' as text", None),
    ],
)
def test_a_call_counts_where_it_is_one(code: str, expected: str | None) -> None:
    assert takes_changes(code) == expected


@pytest.mark.parametrize("strategy", ["microbatch", "my_append"])
def test_strategies_whose_commits_note_no_checkpoint_are_refused(strategy: str) -> None:
    with pytest.raises(DbtRuntimeError, match=f"is used in m, whose incremental_strategy is '{strategy}'"):
        check_takes_changes("m", strategy, {"my_append"})
    check_takes_changes("m", "merge", {"my_append"})
    with pytest.raises(
        DbtRuntimeError, match=r"hudi_new_files is used in m, .*in place of hudi_new_files\(\)"
    ):
        check_takes_changes("m", strategy, {"my_append"}, "hudi_new_files")


def test_the_input_of_a_clone_goes_on_from_that_of_the_original() -> None:
    feed = Feed({"prod.orders": "1", "prod.people": "2"}, frozenset({"dev.orders", "dev.people"}))
    assert [feed.noted_for(name) for name in ("dev.orders", "dev.people", "dev.more")] == ["1", "2", None]
    assert Feed({"a.orders": "1", "b.orders": "2"}).noted_for("dev.orders") is None


def test_a_new_input_does_not_go_on_from_another_one_of_the_same_name_that_the_model_still_reads() -> None:
    feed = Feed({"eu.orders": "1"}, frozenset({"eu.orders", "us.orders"}))
    assert (feed.noted_for("us.orders"), feed.noted_for("eu.orders")) == (None, "1")


def test_an_input_that_the_run_defers_to_is_no_new_one() -> None:
    assert Feed({"dev.orders": "1"}, frozenset({"dev.orders"})).noted_for("prod.orders") == "1"


def test_the_tables_that_a_model_names_are_those_of_its_refs_and_sources() -> None:
    manifest = SimpleNamespace(
        nodes={"model.p.o": SimpleNamespace(schema="EU", alias="orders")},
        sources={"source.p.us.o": SimpleNamespace(schema="us", name="o", identifier="Orders")},
    )
    above = {"nodes": ["model.p.o", "source.p.us.o", "function.p.f"]}
    assert tables_named({"depends_on": above}, manifest) == {"eu.orders", "us.orders"}
    assert tables_named({}, manifest) == frozenset()


def test_files_that_were_taken_count_for_no_changes() -> None:
    noted = TakenFiles().with_files([FileStatus("a", 1, 1, False)], ()).text()
    feed = Feed({"raw.orders": noted, "raw.sample": OF_A_SAMPLE, "raw.table": "20260101000000000"})
    found = feed.taken_files("raw.orders")
    assert found is not None and found.count == 1
    assert feed.noted_for("raw.orders") is None and feed.taken_files("dev.orders") is None
    assert feed.taken_files("raw.table") is None, "the source was a table before"
    with pytest.raises(DbtRuntimeError, match="was built with --sample"):
        feed.taken_files("raw.sample")


def test_a_run_notes_the_checkpoint_and_the_one_that_it_follows() -> None:
    feed = Feed({"s.a": "1", "s.b": "5"}, inputs={"s.a": InputWindow("1", "2", 1)})
    assert feed.noted_in(plan(), rebuilds=False).given_options == {
        CHECKPOINT: '{"s.a":"2","s.b":"5"}',
        CHECKPOINT_BEFORE: '{"s.a":"1","s.b":"5"}',
    }
    assert feed.noted_in(plan(), rebuilds=True).given_options == {CHECKPOINT: '{"s.a":"2"}'}
    feed.is_limited = True
    assert feed.noted_in(plan(), rebuilds=False).given_options == {}, "of no rows nothing is noted"

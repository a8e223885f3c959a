"""What a source says of its place: read from where dbt lets it be said, and refused by name."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.artifacts.resources import NodeConfig, SourceConfig
from dbt_common.contracts.config import base

from dbt.adapters.hudi import run
from dbt.adapters.hudi.model.source import given_places, source_place


def source(external: Any = None, meta: Any = None, config: Any = None) -> Any:
    return SimpleNamespace(
        schema="lake", identifier="events", external=external, meta=meta or {}, config=config
    )


def test_options_become_text_as_spark_wants_it() -> None:
    place = source_place(
        source({"location": "in", "using": "CSV", "options": {"header": True, "maxColumns": 9}})
    )

    assert (place.using, place.options) == ("csv", (("header", "true"), ("maxColumns", "9")))
    assert place.is_files


def test_config_and_meta_can_say_the_place_and_external_goes_first() -> None:
    by_meta, by_config = {"external": {"location": "a"}}, {"external": {"location": "b"}}

    assert source_place(source(None, by_meta)).location == "a"
    assert source_place(source(None, by_meta, by_config)).location == "b"
    assert source_place(source({"location": "c"}, by_meta, by_config)).location == "c"
    assert source_place(source()).location is None


def test_a_place_under_the_meta_of_a_config_is_read_without_a_warning_of_dbts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warned: list[Any] = []
    monkeypatch.setattr(base, "fire_event", warned.append, raising=False)
    config = SourceConfig(meta={"external": {"location": "a"}})
    node = SimpleNamespace(config=NodeConfig(meta={"location_root": "b"}))

    assert source_place(source(config=config)).location == "a"
    assert list(given_places(SimpleNamespace(nodes={"n": node}, sources={}))) == []
    assert warned == []
    assert source_place(source(config=SourceConfig(_extra={"external": {"location": "c"}}))).location == "c"


@pytest.mark.parametrize(
    ("external", "said"),
    [
        (
            {"location": "in", "using": "delta"},
            "external.using is 'delta'; legal values: hudi, parquet, csv, json",
        ),
        ({"using": "csv"}, "external.location is None; give a folder"),
        ({"location": 5}, "external.location is 5"),
        ({"location": "in", "file_format": "csv"}, "external.file_format is not a key .* give it as using"),
        (
            {"location": "in", "optoins": {}},
            "external.optoins .* did you mean 'options'\\? legal keys: location, using",
        ),
        ({"lcation": "in"}, "external.lcation is not a key .* did you mean 'location'"),
        ({"usng": "csv", "location": "in"}, "external.usng is not a key .* did you mean 'using'"),
        (
            {"location": "in", "using": "csv", "options": {"headr": True}},
            "'headr', which Spark's csv .* 'header'",
        ),
        ({"location": "in", "using": "json", "options": {"multiline_": True}}, "did you mean 'multiLine'"),
        (
            {"location": "in", "using": "csv", "options": "header"},
            "external.options is 'header'; give a mapping",
        ),
        ({"location": "in", "using": "csv", "options": {"path": "x"}}, "external.options has 'path'"),
        ({"location": "in", "options": {"header": True}}, "external.options are for files"),
        (
            {"location": "in", "using": "csv", "partitions": "day"},
            "external.partitions is 'day'; give a list",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(external: dict[str, Any], said: str) -> None:
    assert re.search(said, source_place(source(external)).problem)


def test_what_other_packages_keep_there_is_no_place_and_options_of_other_readers_are_left_alone() -> None:
    assert source_place(source({"row_format": "serde"})).location is None
    place = source_place(
        source({"location": "in", "using": "csv", "options": {"HEADER": True, "myCodec.x": "y"}})
    )
    assert place.problem == ""


def test_every_child_of_an_ephemeral_model_uses_its_sources_whoever_compiled_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs, at = run.Runs(), [""]
    monkeypatch.setattr(run, "_current_node", lambda: at[0])
    events = source_place(source({"location": "in"}))

    def selects(node: str, ephemeral: str) -> None:
        at[0] = node
        runs.note_ephemeral(ephemeral)

    at[0] = "inner"
    runs.note_source(events)
    selects("outer", "inner")
    for child in ("first", "second"):
        selects(child, "outer")
        assert (runs.unseen_sources(of_node=True), runs.unseen_sources(of_node=True)) == ((events,), ())
    selects("compiles", "other")
    runs.note_source(events)
    selects("comes later", "other")
    assert runs.unseen_sources(of_node=True) == (events,)
    runs.clear()
    assert runs.unseen_sources(of_node=True) == ()

"""Which runs with ``--sample`` read a sample."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dbt.adapters.hudi.samples import sampled_besides


def node(
    name: str,
    kind: str = "table",
    above: tuple[str, ...] = (),
    event_time: str | None = None,
    code: str = "select 1",
) -> SimpleNamespace:
    config = SimpleNamespace(materialized=kind, event_time=event_time)
    return SimpleNamespace(
        name=name, schema="s", alias=name, config=config, depends_on_nodes=list(above), raw_code=code
    )


@pytest.mark.parametrize(
    ("beside", "in_run", "through"),
    [
        ("view", [], None),
        ("view", ["view"], "view"),
        ("view_of_ephemeral", [], None),
        ("view_of_ephemeral", ["view_of_ephemeral"], "view_of_ephemeral"),
        ("view_of_view", ["view"], "view"),
        ("view_of_view", ["view_of_view"], None),
        ("ephemeral_of_view", ["view"], "view"),
        ("view_of_input", ["view_of_input"], "view_of_input"),
        ("of_changes", ["of_changes"], None),
        ("view_of_table", [], None),
        ("view_of_table", ["table"], "table"),
        ("table", [], None),
        ("table", ["table"], "table"),
        ("raw", ["raw"], None),
        ("ephemeral", [], None),
        ("input", ["input"], None),
        ("plain_view", ["plain_view", "plain"], None),
        ("gone", [], None),
    ],
)
def test_a_sample_is_looked_for_in_what_a_model_reads_beside_its_inputs(
    beside: str, in_run: list[str], through: str | None
) -> None:
    nodes = [
        node("input", "incremental", ("raw",), "at"),
        node("view", "view", ("raw",)),
        node("ephemeral", "ephemeral", ("raw", "input")),
        node("view_of_ephemeral", "view", ("ephemeral",)),
        node("view_of_view", "view", ("view",)),
        node("ephemeral_of_view", "ephemeral", ("view",)),
        node("view_of_input", "view", ("input",)),
        node("view_of_table", "view", ("table",)),
        node("table", "table", ("raw",)),
        node("of_changes", "incremental", ("raw",), code="select * from {{ hudi_changes(ref('raw')) }}"),
        node("plain"),
        node("plain_view", "view", ("plain",)),
    ]
    raw = SimpleNamespace(name="raw", schema="s", identifier="raw", config=SimpleNamespace(event_time="at"))
    manifest = SimpleNamespace(nodes={each.name: each for each in nodes}, sources={"raw": raw})
    model = {"depends_on": {"nodes": ["input", "ephemeral", beside]}}
    assert sampled_besides(model, {"s.input"}, in_run, manifest) == through

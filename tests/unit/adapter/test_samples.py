"""Which runs with ``--sample`` read a sample."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dbt.adapters.hudi.samples import sampled_besides


def node(name: str, kind: str = "table", above: tuple[str, ...] = ()) -> SimpleNamespace:
    config = SimpleNamespace(materialized=kind)
    return SimpleNamespace(name=name, schema="s", alias=name, config=config, depends_on_nodes=list(above))


@pytest.mark.parametrize(
    ("beside", "in_run", "through"),
    [
        ("view", [], None),
        ("view", ["view"], "view"),
        ("view_of_view", ["view_of_view"], "view_of_view"),
        ("view_of_view", ["view"], "view"),
        ("ephemeral_of_view", ["view"], "view"),
        ("ephemeral_of_view", ["ephemeral_of_view"], None),
        ("table", [], None),
        ("table", ["table"], "table"),
        ("raw", ["raw"], None),
        ("ephemeral", [], None),
        ("input", ["input"], None),
        ("missing", [], None),
    ],
)
def test_a_node_built_by_the_run_may_be_a_sample(beside: str, in_run: list[str], through: str | None) -> None:
    nodes = [
        node("input", "incremental", ("raw",)),
        node("view", "view", ("raw",)),
        node("ephemeral", "ephemeral", ("raw", "input")),
        node("view_of_view", "view", ("view",)),
        node("ephemeral_of_view", "ephemeral", ("view",)),
        node("table", "table", ("raw",)),
    ]
    manifest = SimpleNamespace(nodes={each.name: each for each in nodes})
    model = {"depends_on": {"nodes": ["input", "ephemeral", beside]}}
    assert sampled_besides(model, {"s.input"}, in_run, manifest) == through

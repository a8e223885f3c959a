"""What the operation hudi_checkpoint says and refuses."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.hudi.changes.methods import CheckpointArgs

NOTED = {"raw.customers": "001", "raw.orders": "002"}


@pytest.mark.parametrize(
    ("source", "instant", "reset", "now", "lines"),
    [
        (None, None, False, NOTED, ["raw.customers  001", "raw.orders  002"]),
        ("raw.orders", None, False, NOTED, ["raw.orders  002"]),
        ("raw.orders", "001", False, {**NOTED, "raw.orders": "001"}, ["raw.orders  001  set, was 002"]),
        ("raw.new", "003", False, {**NOTED, "raw.new": "003"}, ["raw.new  003  set, was not noted"]),
        (
            "raw.orders",
            None,
            True,
            {"raw.customers": "001"},
            ["raw.orders  forgotten, was 002; the next run takes all rows of it"],
        ),
    ],
)
def test_each_input_gets_a_line(
    source: str | None, instant: str | None, reset: bool, now: dict[str, str], lines: list[str]
) -> None:
    args = CheckpointArgs("mart.daily", source, instant, reset)
    assert args.applied(NOTED) == now
    assert args.lines(NOTED, now) == lines


def test_a_reset_of_all_forgets_all() -> None:
    args = CheckpointArgs("mart.daily", None, None, True)
    assert args.applied(NOTED) == {}
    assert len(args.lines(NOTED, {})) == 2


@pytest.mark.parametrize(
    ("source", "instant", "reset", "problem"),
    [
        ("raw.orders", "001", True, "set is '001' and reset is true; give one of them"),
        (None, "001", False, "for which input.*input: schema.orders, set: '001'"),
        ("raw.order", None, True, "has noted no input 'raw.order'.*noted are: raw.customers, raw.orders"),
        ("raw.order", None, False, "its next run takes all rows of it"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_next_step(
    source: str | None, instant: str | None, reset: bool, problem: str
) -> None:
    with pytest.raises(DbtRuntimeError, match=f"hudi_checkpoint of mart.daily: .*{problem}"):
        CheckpointArgs("mart.daily", source, instant, reset).applied(NOTED)

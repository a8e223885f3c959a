"""The short form of the scorecard: a share of the points of every row, the same ones in every run."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reliability.costs import COSTS, MOST_MEMORY, Cost, measure, peak_of_an_upsert
from tests.reliability.mutants import MUTANTS, Mutant, noticed
from tests.reliability.rows import ROWS
from tests.reliability.session import handed_over_once, start_spark

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Give a session, and hand each batch over once."""
    session = start_spark(str(tmp_path_factory.mktemp("warehouse")))
    logging.disable(logging.WARNING)
    with handed_over_once():
        yield session
    logging.disable(logging.NOTSET)
    session.stop()


@pytest.mark.parametrize("name", [name for name in ROWS if name != "mutants"])
def test_no_promise_is_broken(name: str, spark: Any, tmp_path: Path) -> None:
    row = ROWS[name]
    found = row.run(spark, tmp_path, row.short)
    sys.stdout.write(f"{name}: {found.told()}\n")
    assert found.points > 0
    assert found.violations == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_safety_step_that_is_left_out_is_noticed(mutant: Mutant, spark: Any, tmp_path: Path) -> None:
    assert noticed(spark, tmp_path, mutant)


@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: f"{cost.name}, {cost.kind}")
def test_an_operation_costs_what_it_did(cost: Cost, spark: Any, tmp_path: Path) -> None:
    calls, jobs, listed = measure(spark, tmp_path / "t", cost)
    assert (calls, jobs) == (cost.calls, cost.jobs), listed


def test_a_write_takes_memory_for_its_rows_and_not_for_the_table(spark: Any, tmp_path: Path) -> None:
    assert peak_of_an_upsert(spark, tmp_path / "t") < MOST_MEMORY

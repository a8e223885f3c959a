"""Two writers of a merge-on-read table, stopped where the long form of the scorecard once found a state that did not last."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reliability import pairs
from tests.reliability.actions import Rows
from tests.reliability.figures import Figures
from tests.reliability.session import handed_over_once, start_spark

UPSERT = "upsert of a stored key"


class Always(random.Random):
    """Chance by which each interleaving is looked at to its end, the next writer included."""

    def random(self) -> float:
        """Return the least."""
        return 0.0


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    session = start_spark(str(tmp_path_factory.mktemp("warehouse")))
    with handed_over_once():
        yield session


def interleave(
    spark: Any, root: Path, names: tuple[str, str], stops: list[tuple[float, float]], kind: str = "mor"
) -> int:
    """Stop both writers after these shares of their calls; each time everything is compared to its end."""
    figures = Figures()
    with pairs.taking_turns():
        bench = pairs.PairBench(spark, Rows(spark), pairs.Pair(kind, names), root)
        for first, second in stops:
            at = [round(share * steps) for share, steps in zip((first, second), bench.steps, strict=True)]
            bench.interleave(at[0], at[1], figures, Always())
    return figures.points


def test_a_list_made_between_two_commits_does_not_pass_for_that_of_the_second(
    spark: Any, tmp_path: Path
) -> None:
    # the first has committed and read the timeline, and lists logs in which the second has written meanwhile
    stops = [(share / 64, after / 64) for share in range(48, 60) for after in (36, 50, 64)]
    assert interleave(spark, tmp_path, (UPSERT, UPSERT), stops) == len(stops)


def test_logs_of_a_failed_write_on_a_slice_that_was_rolled_back_go(spark: Any, tmp_path: Path) -> None:
    stops = [(share / 64, after / 55) for share in range(14, 26) for after in (42, 48, 53)]
    assert interleave(spark, tmp_path, (UPSERT, "rollback"), stops) == len(stops)


@pytest.mark.parametrize("kind", ["cow global", "mor global"])
def test_a_key_moves_to_one_of_two_partitions(spark: Any, tmp_path: Path, kind: str) -> None:
    stops = [(share / 8, after / 4) for share in range(1, 8, 2) for after in range(1, 5)]
    assert interleave(spark, tmp_path, ("move", "move"), stops, kind) == len(stops)

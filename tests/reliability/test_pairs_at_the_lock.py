"""Every pair of operations gives what one after the other gives, or one of them is refused."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reliability.at_the_lock import Bench, operations
from tests.reliability.real_table import KINDS
from tests.reliability.session import handed_over_once, start_spark

TABLES = ("cow unpacked", "mor", "mor bucket", "cow global", "cow bucket", "mor global")
NAMES = tuple(operations(lambda rows: rows, 1, KINDS["cow"]))  # type: ignore[arg-type]
WEAKER = (
    ("insert of new keys", "insert of new keys"),
    ("upsert of new keys", "insert of new keys"),
    ("insert of new keys", "delete"),
    ("upsert of what changed", "update by condition"),
    ("delete", "upsert of what changed"),
    ("other columns", "delete"),
    ("upsert", "rebuild with other folders"),
    ("rebuild with other folders", "upsert"),
)
"""Pairs whose second operation depends on less than on the file groups that both write."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    session = start_spark(str(tmp_path_factory.mktemp("warehouse")))
    with handed_over_once():
        yield session


@pytest.fixture(scope="module")
def benches(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bench]:
    return {}


def bench_of(name: str, spark: Any, benches: dict[str, Bench], root: Path) -> Bench:
    """Return the bench of a kind of table, whose serial results are kept."""
    if name not in benches:
        benches[name] = Bench(spark, KINDS[name], root)
    return benches[name]


@pytest.mark.parametrize("kind", TABLES[:2])
def test_some_pairs_of_operations_are_serializable_or_one_is_refused(
    spark: Any, benches: dict[str, Bench], tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    bench = bench_of(kind, spark, benches, tmp_path_factory.mktemp("tables"))
    half = TABLES.index(kind)
    others = random.Random(half).sample([(first, second) for first in NAMES for second in NAMES], 6)
    for first, second in (*WEAKER[half::2], *others):
        assert bench.check(first, second), f"{first} has no stop"


@pytest.mark.long
@pytest.mark.parametrize("first", NAMES)
@pytest.mark.parametrize("kind", TABLES)
def test_all_pairs_of_operations_are_serializable_or_one_is_refused(
    spark: Any, benches: dict[str, Bench], tmp_path_factory: pytest.TempPathFactory, kind: str, first: str
) -> None:
    bench = bench_of(kind, spark, benches, tmp_path_factory.mktemp("tables"))
    for second in NAMES:
        bench.check(first, second)

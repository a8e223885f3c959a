"""Rows in memory are ordered by columns or along a curve, and none is lost."""

from __future__ import annotations

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.enums import CurveBuild, LayoutStrategy
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.layout.grid import fit_grid
from hudi_engine.format.layout.layout import RowLayout

SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("s", pa.string()),
        ("d", pa.decimal128(9, 2)),
        ("f", pa.float64()),
        ("l", pa.list_(pa.int32())),
    ]
)


def rows(count: int, seed: int) -> pa.Table:
    chance = random.Random(seed)

    def maybe(value: object) -> object:
        return None if chance.random() < 0.1 else value

    return pa.Table.from_pylist(
        [
            {
                "n": maybe(chance.randint(-50, 50)),
                "s": maybe("key_" + chance.choice(["", "a", "ä", "zz"]) * chance.randint(0, 5)),
                "d": maybe(Decimal(chance.randint(-999, 999)) / 100),
                "f": maybe(chance.choice([0.0, -0.0, float("nan"), chance.gauss(0, 1e6)])),
                "l": [number],
            }
            for number in range(count)
        ],
        schema=SCHEMA,
    )


@pytest.mark.parametrize("strategy", list(LayoutStrategy))
@pytest.mark.parametrize("build", list(CurveBuild))
@pytest.mark.parametrize("seed", range(4))
def test_every_row_is_there_once_in_whatever_order(
    strategy: LayoutStrategy, build: CurveBuild, seed: int
) -> None:
    given = rows(300, seed)
    done = RowLayout(("n", "s", "d", "f"), strategy, build).sort(given)
    numbers = [each[0] for each in done.column("l").to_pylist()]
    assert sorted(numbers) == list(range(300)) and numbers != list(range(300))
    again = done.take(pa.array(np.argsort(numbers)))
    assert repr(again.to_pydict()) == repr(given.to_pydict())


def test_linear_order_is_by_the_first_column_then_the_next_nulls_last() -> None:
    done = RowLayout(("n", "d")).sort(rows(200, 1)).select(["n", "d"]).to_pylist()
    keys = [(x["n"] is None, x["n"] or 0, x["d"] is None, x["d"] or 0) for x in done]
    assert keys == sorted(keys)


def test_rows_of_a_layout_without_columns_keep_their_order() -> None:
    given = rows(50, 1)
    assert RowLayout().sort(given) is given


@pytest.mark.parametrize("strategy", [LayoutStrategy.Z_ORDER, LayoutStrategy.HILBERT])
@pytest.mark.parametrize("build", list(CurveBuild))
def test_pieces_along_a_curve_are_narrow_in_both_columns(strategy: LayoutStrategy, build: CurveBuild) -> None:
    chance = np.random.default_rng(5)
    # Scales a million apart, and texts that begin alike: both count all the same.
    table = pa.table(
        {
            "n": chance.integers(0, 10**9, 4096),
            "s": [f"customer_{x:04d}" for x in chance.integers(0, 1000, 4096)],
        }
    )
    done = RowLayout(("n", "s"), strategy, build).sort(table)
    pieces = [done.slice(start, 256) for start in range(0, 4096, 256)]

    def share(column: str) -> float:
        values = [
            [int(str(each).removeprefix("customer_")) for each in p.column(column).to_pylist()]
            for p in pieces
        ]
        return float(np.mean([max(v) - min(v) for v in values])) / {"n": 10**9, "s": 1000}[column]

    assert share("n") < 0.5 and share("s") < 0.5


def test_a_sampled_grid_evens_out_values_that_crowd() -> None:
    crowd = pa.table({"n": [*range(1000), 10**15], "m": [0] * 1001})
    steps = (
        fit_grid(crowd, ("n", "m"), LayoutStrategy.Z_ORDER, CurveBuild.SAMPLE)
        .axes[0]
        .coordinates(crowd.column("n").combine_chunks())
    )
    assert len(set(steps.tolist())) == 1001
    direct = (
        fit_grid(crowd, ("n", "m"), LayoutStrategy.Z_ORDER, CurveBuild.DIRECT)
        .axes[0]
        .coordinates(crowd.column("n").combine_chunks())
    )
    assert len(set(direct.tolist())) == 2


@pytest.mark.parametrize("build", list(CurveBuild))
def test_values_outside_the_sample_lie_at_its_ends(build: CurveBuild) -> None:
    axis = fit_grid(pa.table({"n": [10, 20], "m": [1, 2]}), ("n", "m"), LayoutStrategy.Z_ORDER, build).axes[0]
    low, first, last, high, null = axis.coordinates(pa.array([-5, 10, 20, 99, None], pa.int64())).tolist()
    assert low <= first < last <= high and null == 0


def test_a_column_of_nulls_alone_is_one_place() -> None:
    table = pa.table({"n": pa.array([None, None], pa.int64()), "m": [2, 1]})
    assert RowLayout(("n", "m"), LayoutStrategy.HILBERT).sort(table).column("m").to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("columns", "said"),
    [("nn", "names 'nn'; the table's columns are"), ("l", "has no order"), ("n,N", "names 'N' twice")],
)
def test_columns_that_make_no_sense_are_refused_by_name(columns: str, said: str) -> None:
    options = resolve_options({"hoodie.clustering.plan.strategy.sort.columns": columns})
    with pytest.raises(ConfigError, match=said):
        RowLayout.from_options(options).fitted(SCHEMA)


@pytest.mark.parametrize("word", ["z-order", "ZORDER", "Z-Order"])
def test_the_strategy_is_spelled_as_hudi_spells_it(word: str) -> None:
    options = resolve_options(
        {
            "hoodie.layout.optimize.strategy": word,
            "hoodie.layout.optimize.curve.build.method": "sample",
            "hoodie.layout.optimize.build.curve.sample.size": 500,
        }
    )
    assert RowLayout.from_options(options) == RowLayout((), LayoutStrategy.Z_ORDER, CurveBuild.SAMPLE, 500)


def test_a_plan_says_columns_and_strategy_unless_the_call_names_another_one() -> None:
    plan = {
        "hoodie.clustering.plan.strategy.sort.columns": "a, b",
        "hoodie.layout.optimize.strategy": "hilbert",
    }
    assert RowLayout.from_options(resolve_options({}), plan) == RowLayout(("a", "b"), LayoutStrategy.HILBERT)
    called = resolve_options({"hoodie.layout.optimize.strategy": "linear"})
    assert RowLayout.from_options(called, plan).strategy is LayoutStrategy.LINEAR

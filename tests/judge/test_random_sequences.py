"""Random sequences of operations: every reader gives what a plain dictionary gives, after every few steps."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hudi_engine import HudiTable

from tests.judge.arrow_rows import rows_of_spark
from tests.judge.readers import Judges, assert_all_read
from tests.judge.rows import difference, without_meta
from tests.judge.shapes import COLUMNS, SHAPES, Shape, row

pytestmark = pytest.mark.slow

STEPS, LOOK_EVERY = 12, 4
# The other shapes differ from these in one thing that other judge tests look at.
SHORT = [(SHAPES[0], 1), (SHAPES[3], 3), (SHAPES[8], 8)]
LONG = [
    (SHAPES[1], 2),
    (SHAPES[4], 4),
    (SHAPES[5], 5),
    (SHAPES[6], 6),
    (SHAPES[7], 7),
    *((shape, 10 + n) for n, shape in enumerate(SHAPES) if n != 2),
]
PLAYED = [
    *(pytest.param(*each) for each in SHORT),
    *(pytest.param(*each, marks=pytest.mark.long) for each in LONG),
]


@pytest.mark.parametrize(
    ("shape", "seed"), PLAYED, ids=[f"{shape.name}, seed {seed}" for shape, seed in (*SHORT, *LONG)]
)
def test_every_reader_gives_the_rows_of_the_dictionary(
    shape: Shape, seed: int, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    table, oracle, chance = (
        shape.create(HudiTable, spark, str(tmp_path / "t")),
        shape.oracle(),
        random.Random(seed),
    )
    done: list[str] = []
    for step in range(1, STEPS + 1):
        done.append(play(table, oracle, chance, step, spark))
        if step % LOOK_EVERY == 0:
            story = f"after {done}"
            assert difference(without_meta(rows_of_spark(table.snapshot())), oracle.rows()) == "", story
            assert_all_read(tmp_path / "t", oracle.rows(), apache_hudi)


def play(table: HudiTable, oracle: Any, chance: random.Random, step: int, spark: Any) -> str:
    """Do one random operation on the table and the dictionary; gives its name."""
    merge_on_read = table.config.table_type.name == "MERGE_ON_READ"
    kinds = ["upsert"] * 5 + ["delete"] * 2 + ["overwrite", "clean"] + ["compact"] * 2 * merge_on_read
    kinds += ["cluster"] * 2 * ("hoodie.index.type" not in table.config.properties)
    kind = "upsert" if step == 1 else chance.choice(kinds)
    # Late rows too, also of keys that were deleted; a changelog, which has them in its log only, refuses those.
    late = 0 if table.config.keeps_operations else chance.choice((0, 0, 25))
    rows = [
        row(number, 10 * step - late, price=chance.random())
        for number in chance.sample(range(25), chance.randint(1, 12))
    ]
    if kind == "upsert":
        oracle.upsert(rows)
        table.upsert(spark.createDataFrame(rows, COLUMNS))
    elif kind == "delete":
        oracle.delete(rows)
        table.delete(spark.createDataFrame(rows, COLUMNS))
    elif kind == "overwrite":
        oracle.overwrite_partitions(rows)
        table.insert_overwrite(spark.createDataFrame(rows, COLUMNS))
    elif kind == "compact":
        table.compact()
    elif kind == "cluster":
        strategy = chance.choice(["linear", "z-order", "hilbert"])
        table.cluster(["price", "name"], strategy=strategy)
    else:
        table.clean(retain_commits=chance.randint(1, 3))
    return f"{kind} of {len(rows)}"

"""Rows of a bucket that are more than memory should hold: the same result, within a bound, and no file stays."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.merge.combine_batch import combine_batch
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.table.lookup.gathered import gathered
from hudi_engine.table.lookup.unit import ORDER
from hypothesis import given, settings
from hypothesis import strategies as st
from slices import DATA, DEFAULT, LATEST, NON_DEFAULTS, PARTIAL, SliceBuilder, config, row

MIB = 2**20
ROWS = st.lists(
    st.builds(
        row,
        st.sampled_from(["a", "b", "c", "dd", "eé", "f" * 20]),
        st.none() | st.integers(0, 3),
        st.none() | st.integers(0, 9),
        st.none() | st.just("x"),
    ),
    min_size=1,
    max_size=30,
)
UNORDERED = {"hoodie.table.precombine.field": "no"}


def as_is(rows: pa.Table) -> pa.Table:
    return rows


def found(
    parts: list[pa.Table], table: TableConfig, budget: int, folder: str, *, combines: bool
) -> tuple[pa.Table, int]:
    """Rows put together within a budget, and combined as a write combines them."""
    read = SliceBuilder(Path(folder)).context(table, memory_limit_bytes=budget, spill_dir=folder)
    rows, came = gathered(parts, read, as_is, combines=combines)
    assert list(Path(folder).iterdir()) == []
    return combine_batch(rows, table) if combines else rows, came


def batch(rows: list[dict[str, Any]], numbers: list[int] | None, deletes: list[bool]) -> pa.Table:
    """Rows as a shuffle brings them, with the numbers they have in their DataFrame."""
    table = pa.Table.from_pylist(rows, schema=DATA)
    table = table.add_column(0, RECORD_KEY, table.column("id"))
    table = table.append_column("_hoodie_is_deleted", pa.array(deletes))
    return table if numbers is None else table.add_column(1, ORDER, pa.array(numbers, pa.int64()))


@pytest.fixture(params=[None, 2**30], ids=["unlimited", "limited"], scope="module")
def worker_memory(request: pytest.FixtureRequest) -> Iterator[None]:
    """What the memory of a worker is limited to: with a limit rows are split by key as they come."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hudi_engine.table.lookup.gathered.memory_limit", lambda: request.param)
        yield


@pytest.mark.usefixtures("worker_memory")
@pytest.mark.parametrize("more", [{}, UNORDERED, {"hoodie.table.version": "9"}], ids=["ts", "no", "9"])
@pytest.mark.parametrize("payload", [DEFAULT, LATEST, PARTIAL, NON_DEFAULTS])
@settings(max_examples=15, deadline=None)
@given(ROWS, st.booleans(), st.integers(1, 4), st.booleans(), st.randoms(use_true_random=False))
def test_rows_that_spill_are_those_that_do_not(
    payload: str,
    more: dict[str, str],
    rows: list[dict[str, Any]],
    numbered: bool,
    size: int,
    combines: bool,
    chance: random.Random,
) -> None:
    table = config(payload, **more)
    numbers = chance.sample(range(100), len(rows)) if numbered else None
    if len({each["id"] for each in rows}) == len(rows):
        # what does not spill comes as it is where all keys differ
        numbers = sorted(numbers) if numbers else None
    given_rows = batch(rows, numbers, [chance.random() < 0.2 for _ in rows])
    parts = [given_rows.slice(start, size) for start in range(0, len(rows), size)]

    with tempfile.TemporaryDirectory() as folder:
        expected = found(parts, table, 10**9, folder, combines=combines)
        spilled = found(parts, table, 1, folder, combines=combines)

    assert spilled[0].schema.equals(expected[0].schema)
    assert spilled[0].to_pylist() == expected[0].to_pylist()
    assert spilled[1] == expected[1] == len(rows)


@pytest.mark.parametrize("combines", [True, False])
def test_no_file_stays_when_rows_end_in_an_error(tmp_path: Path, combines: bool) -> None:
    def parts() -> Iterator[pa.Table]:
        yield batch([row("a"), row("b")], None, [False, False])
        assert any(tmp_path.iterdir()) is False
        yield batch([row("a"), row("c")], None, [False, False])
        assert any(tmp_path.iterdir())
        raise OSError("lost")

    read = SliceBuilder(tmp_path).context(config(), memory_limit_bytes=100, spill_dir=str(tmp_path))
    with pytest.raises(OSError, match="lost"):
        gathered(parts(), read, as_is, combines=combines)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named_with_the_option(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = str(tmp_path / "file" / "spill")
    read = SliceBuilder(tmp_path).context(config(), memory_limit_bytes=1, spill_dir=folder)
    parts = [batch([row("a"), row("b")], None, [False, False])]
    with pytest.raises(ConfigError, match=f"in {folder!r}: .*hoodie.memory.spillable.map.path"):
        gathered(parts, read, as_is, combines=True)


LIMITED = """
import resource, sys
from pathlib import Path
from hudi_engine.format.merge.spill import _mapped
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
try:
    _mapped(Path(sys.argv[1]))
except MemoryError as error:
    print("lacks memory:", error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_a_file_that_does_not_fit_into_the_limit_of_a_worker_is_a_lack_of_memory(tmp_path: Path) -> None:
    with (tmp_path / "rows").open("wb") as file:
        file.truncate(2**31)
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "rows")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("lacks memory: ")


VERSIONS, KEYS, AT_ONCE = 40, 7_500, 2_500
BUDGET = 8 * MIB
SLACK = 4 * MIB
"""A batch of 1.3 MB, and copies of an eighth of the budget, or of what a share of the keys is decided by."""
POOLS: list[pa.MemoryPool] = []
"""Those of ended tests, of which there may be memory left."""


@pytest.fixture
def counted() -> Iterator[pa.MemoryPool]:
    """What counts the memory that Arrow takes in a test, and the most of it."""
    usual = pa.default_memory_pool()
    POOLS.append(pa.proxy_memory_pool(usual))
    pa.set_memory_pool(POOLS[-1])
    yield POOLS[-1]
    pa.set_memory_pool(usual)


def versions() -> Iterator[pa.Table]:
    """Yield batches of a task that gets each key forty times, 150 MB in all."""
    texts = pa.array(["x" * 470 + str(number) for number in range(10)])
    for version in range(VERSIONS):
        for start in range(0, KEYS, AT_ONCE):
            numbers = np.arange(start, start + AT_ONCE)
            ids = pa.array([f"key {number:08d}" for number in numbers])
            columns = {
                RECORD_KEY: ids,
                ORDER: pa.array(version * KEYS + numbers),
                "id": ids,
                "ts": pa.repeat(version, AT_ONCE),
                "a": pa.array(numbers),
                "b": texts.take(pa.array(numbers % 10)),
            }
            yield pa.table(columns)


@pytest.mark.usefixtures("worker_memory")
@pytest.mark.parametrize("payload", [DEFAULT, PARTIAL])
def test_forty_versions_of_each_key_take_no_more_memory_than_the_budget_and_a_batch(
    tmp_path: Path, payload: str, counted: pa.MemoryPool
) -> None:
    size = sum(part.nbytes for part in versions())
    most_before = counted.max_memory()
    read = SliceBuilder(tmp_path).context(config(payload), memory_limit_bytes=BUDGET, spill_dir=str(tmp_path))

    rows, came = gathered(versions(), read, as_is, combines=True)

    assert size > 150_000_000 and most_before < 3 * MIB
    assert came == VERSIONS * KEYS and rows.column("a").to_pylist() == list(range(KEYS))
    assert set(rows.column("ts").to_pylist()) == {VERSIONS - 1}
    assert BUDGET < counted.max_memory() < BUDGET + rows.nbytes + SLACK
    assert counted.bytes_allocated() < MIB, "what is left is mapped"

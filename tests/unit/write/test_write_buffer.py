"""The rows that tasks hold and are sent."""

from __future__ import annotations

import pickle
import random

import pyarrow as pa
import pytest
from hudi_engine.format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.spark.write.spread import executor_path

from tests.unit.handles.test_merge import a_task


def batch(chance, numbers):
    """Rows of several partitions, whose texts are short or long."""
    return pa.table(
        {
            RECORD_KEY: [f"k{number}" for number in numbers],
            PARTITION_PATH: [f"p{chance.randrange(4)}" for _ in numbers],
            "id": [("x" * chance.choice((1, 50, 2000))) + str(number) for number in numbers],
            "ts": pa.array(numbers, pa.int64()),
        }
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_task_never_holds_more_than_its_limit_and_a_batch(tmp_path, monkeypatch, seed):
    chance, limit, written, held = random.Random(seed), 100_000, [], []
    monkeypatch.setattr(
        executor_path,
        "create_files",
        lambda task, partition, rows: written.append((partition, rows["ts"].to_pylist())) or [],
    )
    task = a_task(tmp_path, **{"hoodie.engine.write.task.max.bytes": str(limit)})
    buffer = executor_path._PartitionBuffer(task, None)
    first = 0
    for _ in range(60):
        size = chance.randrange(1, 40)
        rows = batch(chance, range(first, first + size))
        buffer.add(rows)
        first += size
        held.append(sum(table.nbytes for tables in buffer._held.values() for table in tables))
    assert max(held) <= limit
    assert max(held) > limit // 2, "rows wait for others of their partition"
    buffer.finish()
    assert sorted(number for _, numbers in written for number in numbers) == list(range(first))
    assert len(written) < 60


def test_rows_of_a_small_batch_are_sent_once_whatever_the_number_of_partitions() -> None:
    rows = batch(random.Random(0), range(2000))
    sent = [pickle.dumps(each) for each in executor_path.items_of({}, rows)]
    assert len(sent) == 4
    assert sum(map(len, sent)) < 1.5 * len(pickle.dumps(rows))

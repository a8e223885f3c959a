"""What every row of the scorecard shares: one Spark session, and batches that Spark hands over once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from hudi_engine.spark.write import source

from tests.helpers.small_session import small_session


def start_spark(warehouse: str, cores: int = 2) -> Any:
    """Return a small, quiet session in UTC.

    Args:
        warehouse: Folder of its warehouse.
        cores: Threads of its tasks.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from hudi_engine.spark.catalog import session_conf

    return small_session(warehouse, cores, session_conf())


@contextmanager
def handed_over_once() -> Iterator[None]:
    """Keep what Spark answers about a batch: its fitted columns and its rows, as thousands of runs write the same ones.

    Everything that touches the table runs each time. Threads run one after the other, so that the storage calls
    of a write have the same numbers in every run, and nothing is synced: a killed process loses nothing by that.
    """
    align, fetch_small, sync, cores = source.align, source.fetch_small, os.fsync, os.cpu_count
    kept: dict[Any, Any] = {}

    def align_once(frame: Any, schema: Any, policy: Any, *, carry: Any = ()) -> Any:
        key = ("align", id(frame), str(schema), policy, tuple(carry))
        if key not in kept:
            kept[key] = (frame, align(frame, schema, policy, carry=carry))
        return kept[key][1]

    def fetch_once(batch: Any, options: Any) -> pa.Table | None:
        key = ("fetch", id(batch))
        if not any(batch is each[1] for each in kept.values()):
            return fetch_small(batch, options)
        if key not in kept:
            kept[key] = (batch, fetch_small(batch, options))
        return kept[key][1]

    source.align, source.fetch_small = align_once, fetch_once  # type: ignore[attr-defined]
    os.fsync, os.cpu_count = lambda descriptor: None, lambda: 1  # type: ignore[assignment]
    try:
        yield
    finally:
        source.align, source.fetch_small = align, fetch_small  # type: ignore[attr-defined]
        os.fsync, os.cpu_count = sync, cores

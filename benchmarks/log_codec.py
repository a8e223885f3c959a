"""Rows a second of log data blocks: this engine's Avro, Parquet, and fastavro on dictionaries, on one core.

python -m benchmarks.log_codec
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.logformat.reader import decode_data_block, read_blocks
from hudi_engine.format.logformat.writer import encode_data_blocks
from hudi_engine.format.schema.avro import arrow_to_avro
from hudi_engine.table.handles.base_file_writer import attach_meta_columns
from hudi_engine.table.state import full_avro

ROWS = 200_000
INSTANT = "20260101000000000"


def measure(rows: int = ROWS) -> dict[str, float]:
    """Rows a second by what was done, the best of three."""
    data = _rows(rows)
    names = {"hoodie.table.name": "bench", "hoodie.table.type": "MERGE_ON_READ", "hoodie.table.version": "6"}
    config = TableConfig.from_properties(names)
    schema = full_avro(arrow_to_avro(data.schema, "bench"), config)
    keys = data.column("id")
    table = attach_meta_columns(
        data, commit_time=INSTANT, seqno_prefix_task=0, keys=keys, partition="2026-01-01", file_name="f-0"
    )
    parsed = fastavro.parse_schema(schema)
    found = {}
    for form in ("avro", "parquet"):
        blocks = b"".join(encode_data_blocks(table, schema, INSTANT, block_format=form))
        found[f"{form} block, write"] = _speed(
            rows, lambda form=form: encode_data_blocks(table, schema, INSTANT, block_format=form)
        )
        found[f"{form} block, read"] = _speed(
            rows, lambda blocks=blocks: [decode_data_block(each) for each in read_blocks(blocks)]
        )
    datums = [_datum(row, parsed) for row in table.to_pylist()]
    found["fastavro, write from dictionaries"] = _speed(
        rows, lambda: [_datum(row, parsed) for row in table.to_pylist()]
    )
    found["fastavro, read to dictionaries"] = _speed(
        rows, lambda: [fastavro.schemaless_reader(io.BytesIO(each), parsed) for each in datums]
    )
    return found


def _datum(row: dict[str, object], schema: object) -> bytes:
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, schema, row)  # type: ignore[arg-type]
    return sink.getvalue()


def _speed(rows: int, work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return rows / best


def _rows(count: int) -> pa.Table:
    numbers = np.arange(count)
    ids = pc.binary_join_element_wise("key-", pa.array(numbers).cast(pa.string()), "-of-the-table", "")
    return pa.table(
        {
            "id": ids,
            "ts": pa.array(numbers),
            "dt": pa.repeat(pa.scalar("2026-01-01"), count),
            "customer": pa.array((numbers % 50_000).astype(np.int32)),
            "amount": pa.array(numbers / 7),
            "note": pc.binary_join_element_wise("note ", pa.array(numbers % 1000).cast(pa.string()), ""),
            "event_at": pa.array(numbers * 1_000_000, pa.timestamp("us", "UTC")),
        }
    )


def table(found: dict[str, float]) -> str:
    """The speeds in Markdown."""
    lines = ["| log data blocks, one core | rows a second |", "|---|---|"]
    return "\n".join([*lines, *(f"| {what} | {speed:,.0f} |" for what, speed in found.items())])


if __name__ == "__main__":
    sys.stdout.write(table(measure()) + "\n")

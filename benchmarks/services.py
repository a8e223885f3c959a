"""Table services against the least they could cost: compaction against pyarrow copying the bytes, and clean of many files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pyarrow_copy_seconds(table: str, target: Path) -> float:
    """Seconds pyarrow takes to read the newest base file of every file group and write its bytes again, two at a time."""
    from concurrent.futures import ThreadPoolExecutor

    import pyarrow.parquet as pq
    from hudi_engine.format.storage.factory import open_storage
    from hudi_engine.table.state import TableState

    state = TableState.load(open_storage(table))
    target.mkdir(parents=True, exist_ok=True)

    def copy(path: str) -> None:
        rows = pq.read_table(Path(table) / path, partitioning=None)
        pq.write_table(
            rows, target / Path(path).name, compression="zstd", compression_level=1, store_schema=False
        )

    start = time.monotonic()
    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(copy, [base.path for base in state.view().latest_base_files()]))
    return time.monotonic() - start


def clean_seconds(spark: SparkSession, folder: Path, files: int) -> tuple[float, int]:
    """Seconds of a clean that deletes about ``files`` base files, and how many it deleted.

    Args:
        spark: The session.
        folder: Where the table goes.
        files: Files to delete; the table has half as many partitions and is overwritten three times.
    """
    from hudi_engine import HudiTable

    table = HudiTable.create(
        spark,
        str(folder / "clean"),
        name="clean",
        record_key=["id"],
        partition_by=["part"],
        options={"hoodie.clean.automatic": "false", "hoodie.engine.publish.manifest": "false"},
    )
    rows = spark.range(files // 2).selectExpr("id", "id as part", "'x' as note")
    table.bulk_insert(rows)
    for _ in range(3):  # clean keeps the newest of the three generations replaced
        table.insert_overwrite_table(rows)
    start = time.monotonic()
    result = table.clean(1)
    return time.monotonic() - start, result.files_deleted

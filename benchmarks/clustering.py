"""What clustering gives a range query: files and row groups that a reader cannot skip by their statistics.

    python -m benchmarks.clustering [ROWS]

Counts, no times: each figure is what the footers of the table's files say, so it is the same on every machine.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from hudi_engine import HudiTable
from hudi_engine.spark.catalog import session_conf
from hudi_engine.table.state import TableState

ROWS = """
id,
cast(pmod(hash(id, 1), 10000) as int) as customer,
date_add(date'2024-01-01', pmod(hash(id, 2), 365)) as day,
cast(pmod(hash(id, 3), 100000) / 100 as decimal(9,2)) as amount,
sha2(cast(id as string), 256) as note
"""
QUERIES: Mapping[str, Mapping[str, tuple[Any, Any]]] = {
    "a week": {"day": (dt.date(2024, 6, 3), dt.date(2024, 6, 9))},
    "a hundredth of the customers": {"customer": (4200, 4299)},
    "both": {"day": (dt.date(2024, 6, 3), dt.date(2024, 6, 9)), "customer": (4200, 4299)},
}
LAYOUTS = ("linear", "z-order", "hilbert")
SMALL = {
    "hoodie.parquet.block.size": str(512 * 1024),
    "hoodie.clustering.plan.strategy.target.file.max.bytes": str(2 * 1024 * 1024),
    "hoodie.engine.publish.manifest": "false",
}


def main(rows: int) -> None:
    """Make a table, cluster it in each layout, and print what each query reads."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config(map=session_conf()).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    with tempfile.TemporaryDirectory() as folder:
        table = HudiTable.create(spark, f"{folder}/sales", name="sales", record_key=["id"])
        spark.range(0, rows, 1, max(2, rows // 20_000)).createOrReplaceTempView("numbers")
        source = spark.sql(f"select {ROWS} from numbers")
        table.bulk_insert(source, options=SMALL)
        found = {"as loaded": read_by(table, folder)}
        for layout in LAYOUTS:
            table.cluster(["day", "customer"], strategy=layout, options=SMALL)
            found[layout] = read_by(table, folder)
    print(json.dumps(found, indent=1))
    print(as_table(found))


def read_by(table: HudiTable, folder: str) -> dict[str, tuple[int, int]]:
    """Return files and row groups that each query reads, and how many there are."""
    live = TableState.load(table.storage).view().latest_slices()
    files = [Path(folder, "sales", each.base_file.path) for each in live if each.base_file is not None]
    footers = [pq.ParquetFile(file) for file in files]
    counts = {"all": (len(footers), sum(each.num_row_groups for each in footers))}
    for name, ranges in QUERIES.items():
        groups = [
            sum(_may_match(file, number, ranges) for number in range(file.num_row_groups)) for file in footers
        ]
        counts[name] = (sum(bool(each) for each in groups), sum(groups))
    return counts


def _may_match(file: pq.ParquetFile, number: int, ranges: Mapping[str, tuple[Any, Any]]) -> bool:
    names = file.schema_arrow.names
    for name, (low, high) in ranges.items():
        statistics = file.metadata.row_group(number).column(names.index(name)).statistics
        if statistics.max < low or statistics.min > high:
            return False
    return True


def as_table(found: Mapping[str, Mapping[str, tuple[int, int]]]) -> str:
    """Return the figures as a table of the documentation."""
    names = list(QUERIES)
    lines = [f"| files in order | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for layout, counts in found.items():
        files, groups = counts["all"]
        cells = [
            f"{counts[name][0]} of {files} files, {counts[name][1]} of {groups} row groups" for name in names
        ]
        lines.append(f"| {layout} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400_000)

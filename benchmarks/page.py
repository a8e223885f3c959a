"""The tables of docs/performance.md, from what was measured last.

python -m benchmarks.page       writes them into the page, from benchmarks/results.json
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from benchmarks.aims import Results
from benchmarks.report import aims_table, seconds_table

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
MEASURED = ROOT / "benchmarks" / "results.json"

_TABLE = re.compile(r"(<!-- table: (.+?) -->\n).*?(\n<!-- end of table -->)", re.DOTALL)
_COW = {
    "dbt-hudi": "dbt-hudi",
    "parquet": "Parquet, rewritten",
    "delta": "Delta 3.3",
    "iceberg": "Iceberg 1.12",
    "hudi": "Hudi 1.2",
}
_MOR = {"dbt-hudi mor": "dbt-hudi", "iceberg mor": "Iceberg 1.12", "hudi mor": "Hudi 1.2"}
_STEPS = {
    "first load": "the first load",
    "load": "load",
    "load in turn": "the same, in turn with the others in one process",
    "tiny upsert": "upsert of 110 rows into 100,000",
    "tiny upsert in turn": "the same, in turn with the others in one process",
    "upsert 0.1 %": "upsert of 0.1 %",
    "upsert 0.1 % in turn": "the same, in turn with the others in one process",
    "upsert 10 %": "upsert of 10 %",
    "upsert 10 % in turn": "the same, in turn with the others in one process",
    "first scan": "open the table; count and two sums, 10 % updated twice; first of the process",
    "scan": "the same after forty",
    "scan in turn": "the same, in turn with the others in one process",
    "all columns": "all columns",
    "overwrite 1 of 10 partitions": "overwrite of one partition of ten",
    "overwrite 1 of 10 partitions in turn": "the same, in turn with the others in one process",
    "bulk_insert into one partition": "`bulk_insert` into one partition",
    "insert into one partition": "`insert` into one partition",
    "compaction": "compaction",
    "scan after compaction": "count and two sums after compaction and forty",
}


def tables(results: Results) -> dict[str, str]:
    """Return the tables of the page by name.

    Args:
        results: What was measured.
    """
    return {
        "copy-on-write": seconds_table(results, "copy-on-write", _COW, _STEPS),
        "merge-on-read": seconds_table(results, "merge-on-read", _MOR, _STEPS),
        "aims": aims_table(results),
    }


def filled(page: str, results: Results) -> str:
    """Return the page with the tables of what was measured."""
    found = tables(results)
    return _TABLE.sub(lambda match: match[1] + found[match[2]] + match[3], page)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8"), json.loads(MEASURED.read_text("utf-8"))), "utf-8")

"""The tables of docs/performance.md, from what was measured last.

python -m benchmarks.page       writes them into the page, from benchmarks/results.json
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from benchmarks.aims import AIMS, Results

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
    "load": "load",
    "tiny upsert": "upsert of 110 rows into 100,000",
    "upsert 0.1 %": "upsert of 0.1 %",
    "upsert 10 %": "upsert of 10 %",
    "scan": "count and two sums, 10 % updated twice",
    "all columns": "all columns",
    "overwrite 1 of 10 partitions": "overwrite of one partition of ten",
    "bulk_insert into one partition": "`bulk_insert` into one partition",
    "insert into one partition": "`insert` into one partition",
    "compaction": "compaction",
    "scan after compaction": "count and two sums after compaction",
}


def tables(results: Results) -> dict[str, str]:
    """Return the tables of the page by name.

    Args:
        results: What was measured.
    """
    return {
        "copy-on-write": _seconds("copy-on-write", results, _COW),
        "merge-on-read": _seconds("merge-on-read", results, _MOR),
        "aims": _aims(results),
    }


def filled(page: str, results: Results) -> str:
    """Return the page with the tables of what was measured."""
    found = tables(results)
    return _TABLE.sub(lambda match: match[1] + found[match[2]] + match[3], page)


def _seconds(title: str, results: Results, systems: Mapping[str, str]) -> str:
    lines = [f"| {title} | {' | '.join(systems.values())} |", "|---" * (len(systems) + 1) + "|"]
    for step, words in _STEPS.items():
        row = [results.get(name, {}).get(step) for name in systems]
        seconds = [each["seconds"] for each in row if each]
        if seconds:
            best = min(seconds) if len(seconds) > 1 else None
            cells = [_cell(each, best) if each else "" for each in row]
            lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(measured: Mapping[str, float], best: float | None) -> str:
    seconds = measured["seconds"]
    text = f"{seconds:.2f}" if seconds < 3 else f"{seconds:.1f}"
    return (f"**{text}**" if seconds == best else text) + f" ({measured['jobs']:.0f})" * bool(
        measured["jobs"]
    )


def _aims(results: Results) -> str:
    lines = ["| aim | at most | measured | |", "|---|---|---|---|"]
    for aim in AIMS:
        ratio = aim.ratio(results)
        if ratio is not None:
            verdict = "met" if ratio <= aim.limit else "**missed**"
            lines.append(f"| {aim.text} | {aim.limit:g} | {ratio:.3g} | {verdict} |")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8"), json.loads(MEASURED.read_text("utf-8"))), "utf-8")

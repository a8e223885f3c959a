"""The tables and bars of docs/performance.md and docs/benchmarks.md, from what was measured last.

python -m benchmarks.page       writes them, from benchmarks/results.json and benchmarks/longevity.json
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.aims import Results
from benchmarks.longevity import longevity_table
from benchmarks.report import aims_table, seconds_table

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "docs" / "performance.md", ROOT / "docs" / "benchmarks.md")
PICTURES = ROOT / "docs" / "pictures"
MEASURED, MAINTAINED = ROOT / "benchmarks" / "results.json", ROOT / "benchmarks" / "longevity.json"
_ROUNDS = 5

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
_SUMMARY = {
    "load": ("load", ""),
    "upsert 0.1 %": ("upsert of 0.1 %, copy-on-write", ""),
    "upsert 10 %": ("upsert of 10 %, copy-on-write", ""),
    "overwrite 1 of 10 partitions": ("overwrite of one partition of ten", ""),
    "scan": ("count and two sums", ""),
    "mor: upsert 0.1 %": ("upsert of 0.1 %, merge-on-read", " mor"),
    "mor: upsert 10 %": ("upsert of 10 %, merge-on-read", " mor"),
    "mor: scan": ("count and two sums, merge-on-read", " mor"),
}
"""Rows of the short table: a step, its words, and what the names of its systems end with."""
_BARS = {
    "writes": [(words, step, end) for step, (words, end) in _SUMMARY.items() if not end and step != "scan"],
    "merge-on-read": [
        (words, step.removeprefix("mor: "), end) for step, (words, end) in _SUMMARY.items() if end
    ],
}
_COLOURS = {
    "dbt-hudi": "#d9480f",
    "parquet": "#868e96",
    "delta": "#1c7ed6",
    "iceberg": "#74b0e4",
    "hudi": "#c2a878",
}
_LEFT, _WIDTH, _LINE = 110, 760, 18
_LAKES = {
    "parquet": "Parquet",
    "dbt-hudi": "dbt-hudi",
    "dbt-hudi mor": "dbt-hudi, MOR",
    "delta": "Delta 3.3",
    "iceberg": "Iceberg 1.12",
    "iceberg mor": "Iceberg, MOR",
    "hudi": "Hudi 1.2",
    "hudi mor": "Hudi, MOR",
}
_COURSE = {
    "load of 24 tables": ["build"],
    "a round of maintenance, the median of five": [f"round {each + 1}" for each in range(_ROUNDS)],
    "25 queries after the fifth": [f"queries {_ROUNDS}"],
}


def tables(results: Results) -> dict[str, str]:
    """Return the tables of the page by name.

    Args:
        results: What was measured.
    """
    return {
        "summary": _summary(results),
        "copy-on-write": seconds_table(results, "copy-on-write", _COW, _STEPS),
        "merge-on-read": seconds_table(results, "merge-on-read", _MOR, _STEPS),
        "aims": aims_table(results),
        "longevity": longevity_table(maintained(), _ROUNDS, _LAKES),
    }


def maintained() -> dict[str, dict[str, Any]]:
    """Return the figures of `benchmarks.longevity` that the pages show."""
    found: dict[str, dict[str, Any]] = json.loads(MAINTAINED.read_text("utf-8"))
    return found


def filled(page: str, results: Results) -> str:
    """Return the page with the tables of what was measured."""
    found = tables(results)
    return _TABLE.sub(lambda match: match[1] + found[match[2]] + match[3], page)


def _summary(results: Results) -> str:
    """Return the short table: some steps of both table types, a column a system."""
    short: dict[str, dict[str, Any]] = {name: {} for name in _COW}
    for step, (_, end) in _SUMMARY.items():
        for name in _COW:
            measured = results.get(f"{name}{end}", {}).get(step.removeprefix("mor: "))
            if measured is not None:
                short[name][step] = measured
    return seconds_table(short, "", _COW, {step: words for step, (words, _) in _SUMMARY.items()})


def bars(results: Results, name: str) -> str:
    """Return a picture of steps, a bar a system, as SVG.

    Args:
        name: One of ``writes`` and ``merge-on-read``.
    """
    groups = {}
    for words, step, end in _BARS[name]:
        found = {each: results.get(f"{each}{end}", {}).get(step) for each in _COW}
        groups[words] = {
            _COW[each].partition(",")[0]: (float(measured["seconds"]), _COLOURS[each])
            for each, measured in found.items()
            if measured
        }
    return _drawn(groups)


def course() -> str:
    """Return the picture of tables that are maintained: load, the median of the rounds, the queries after them."""
    groups: dict[str, dict[str, tuple[float, str]]] = {words: {} for words in _COURSE}
    for name, steps in maintained().items():
        for words, wanted in _COURSE.items():
            taken = [steps[each]["seconds"] for each in wanted if each in steps]
            if len(taken) == len(wanted):
                groups[words][_LAKES[name]] = (median(taken), _COLOURS[name.removesuffix(" mor")])
    return _drawn(groups)


def _drawn(groups: Mapping[str, Mapping[str, tuple[float, str]]]) -> str:
    """Return seconds and colour by system, below some words each, as SVG."""
    lines, y = [], 6
    for words, bars_of in groups.items():
        longest = max(taken for taken, _ in bars_of.values())
        lines.append(f'<text x="0" y="{y + 13}" font-weight="bold">{words}</text>')
        y += _LINE + 4
        for system, (taken, colour) in bars_of.items():
            width = max(2.0, taken / longest * (_WIDTH - _LEFT - 90))
            lines.append(f'<text x="{_LEFT - 6}" y="{y + 12}" text-anchor="end">{system}</text>')
            lines.append(
                f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_LINE - 4}" fill="{colour}"/>'
            )
            lines.append(f'<text x="{_LEFT + width + 6:.1f}" y="{y + 12}">{taken:.2f} s</text>')
            y += _LINE
        y += 12
    drawn = "\n".join(lines)
    style = 'font-family="sans-serif" font-size="12" fill="#666"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}" {style}>\n{drawn}\n</svg>\n'


def files(results: Results) -> dict[Path, str]:
    """Return the text of each page and picture by its path."""
    found = {page: filled(page.read_text("utf-8"), results) for page in PAGES}
    drawn = {PICTURES / f"{name}.svg": bars(results, name) for name in _BARS}
    return found | drawn | {PICTURES / "longevity.svg": course()}


if __name__ == "__main__":
    for path, text in files(json.loads(MEASURED.read_text("utf-8"))).items():
        path.write_text(text, "utf-8")

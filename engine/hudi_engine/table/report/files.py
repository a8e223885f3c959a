"""How a table lies on storage: sizes, logs, rows of file groups, partitions."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from statistics import median

from hudi_engine.table.inspect import cells_of
from hudi_engine.table.report.charts import Series, bar, columns, runs, split
from hudi_engine.table.report.facts import Facts
from hudi_engine.table.report.markup import NOTHING, Markup, number, plural, share, size, tag
from hudi_engine.table.report.tables import MOST_ROWS, cut, table

_KB, _MB, _GB = 1_000, 1_000_000, 1_000_000_000
_EDGES = (
    100 * _KB,
    1 * _MB,
    4 * _MB,
    16 * _MB,
    32 * _MB,
    64 * _MB,
    128 * _MB,
    256 * _MB,
    512 * _MB,
    1 * _GB,
)


def file_charts(facts: Facts) -> list[Markup]:
    """Return sizes of base files, the share of logs, and rows over file groups."""
    if not facts.snapshot.slices:
        return [tag("p", "There is no file yet.")]
    return [_sizes(facts), _logs(facts), _groups(facts)]


def partitions(facts: Facts) -> list[Markup]:
    """Return the partitions with their files; those with most bytes where there are too many."""
    small = Counter(base.partition for base in facts.snapshot.bases if base.size < facts.small_limit)
    rows: Counter[str] = Counter()
    for base in facts.snapshot.bases:
        rows[base.partition] += facts.snapshot.base_rows[base.path]
    found = facts.stats.partitions
    chosen = sorted(found, key=lambda each: -(each.base_bytes + each.log_bytes))[:MOST_ROWS]
    lines = [
        {
            "partition": each.partition or "(not partitioned)",
            "base_rows": rows[each.partition],
            "small_files": small[each.partition],
            "mean_base_bytes": each.base_bytes // max(1, each.base_files),
            **cells_of(each, "file_groups", "base_files", "base_bytes", "log_files", "log_bytes"),
        }
        for each in sorted(chosen, key=lambda each: each.partition)
    ]
    return [cut(len(lines), len(found), "largest partitions"), table("Partitions", lines)]


def _sizes(facts: Facts) -> Markup:
    sizes = [base.size for base in facts.snapshot.bases]
    if not sizes:
        return NOTHING
    counts = Counter(bisect_right(_EDGES, each) for each in sizes)
    first, last = min(counts), max(counts)
    most = max(counts.values())
    bars = [
        bar(_between(place), counts[place], most, number(counts[place])) for place in range(first, last + 1)
    ]
    head = tag("figcaption", "Base files by size (number of files)")
    small = facts.stats.small_files
    note = (
        f"{plural(small, 'file is', 'files are')} below the limit of small files, {size(facts.small_limit)}: "
    )
    note += "new rows fill those first. " if small else "nothing to fill up. "
    note += f"Median {size(median(sizes))}, largest {size(max(sizes))}."
    return tag("figure", head, *bars, tag("p", note, class_="note"), class_="chart")


def _between(place: int) -> str:
    if place == 0:
        return f"below {_short(_EDGES[0])}"
    if place == len(_EDGES):
        return f"{_short(_EDGES[-1])} and more"
    return f"{_short(_EDGES[place - 1])} to {_short(_EDGES[place])}"


def _short(count: int) -> str:
    unit, name = next((unit, name) for unit, name in ((_GB, "GB"), (_MB, "MB"), (_KB, "kB")) if count >= unit)
    return f"{count // unit} {name}"


def _logs(facts: Facts) -> Markup:
    stats = facts.stats
    parts = (
        Series(f"base files {size(stats.base_bytes)}", "ink1", [stats.base_bytes]),
        Series(f"log files {size(stats.log_bytes)}", "ink2", [stats.log_bytes]),
    )
    with_logs = sum(bool(each.log_files) for each in facts.snapshot.slices)
    note = f"{share(stats.log_share)} of the bytes are in logs; {with_logs:,} of {plural(stats.file_groups, 'file group')} "
    note += "have logs that readers merge."
    head = tag("figcaption", "Bytes in base files and in logs")
    return tag("figure", head, split(parts), tag("p", note, class_="note"), class_="chart")


def _groups(facts: Facts) -> Markup:
    """Draw the rows of file groups and say how evenly they are spread."""
    rows = sorted((facts.snapshot.base_rows[base.path] for base in facts.snapshot.bases), reverse=True)
    if not rows:
        return NOTHING
    groups = runs(rows)
    each = f"the largest of every {len(groups[0]):,}" if len(groups[0]) > 1 else "each"
    shown = columns(
        f"Rows a file group ({each}, most rows first, base files)",
        [Series("rows", "ink1", [group[0] for group in groups])],
        ["most rows", "fewest"] if len(rows) > 1 else ["", "the only file group", ""],
        shown=lambda value: f"{value:,.0f}" if value == int(value) else f"{value:,.1f}",
        tips=[plural(group[0], "row") for group in groups],
    )
    middle = median(rows)
    note = f"Most {rows[0]:,}, median {middle:,.0f}, fewest {rows[-1]:,}."
    if middle and rows[0] > 2 * middle:
        note += f" The fullest has {rows[0] / middle:,.1f} times the median: the rows are spread unevenly."
    return tag("div", shown, tag("p", note, class_="note"), class_="wide")

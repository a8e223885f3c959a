"""The tables of seconds and of aims, in Markdown, and the bar chart.

python -m benchmarks.report benchmarks/results.json       again, from the results of a run
"""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path

from benchmarks.aims import AIMS, Results


def save(results: Results, chart_path: Path) -> None:
    """Keep what was measured so far beside the chart."""
    chart_path.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")


def report(results: Results, chart_path: Path) -> None:
    """Print the tables, write them beside the chart, and draw it.

    Args:
        results: What was measured.
        chart_path: Where the chart goes.
    """
    found = {name: steps for name, steps in results.items() if steps}
    tables = "\n\n".join([seconds_table(found), aims_table(found)]) + "\n"
    print(f"\n{tables}")
    chart_path.with_suffix(".md").write_text(tables, "utf-8")
    if chart(found, chart_path):
        print(f"chart: {os.path.relpath(chart_path)}")


def seconds_table(results: Results) -> str:
    """Seconds and Spark jobs of every step, a column a system; the fastest of a step is bold."""
    systems = list(results)
    lines = [f"| seconds (Spark jobs) | {' | '.join(systems)} |", "|---" * (len(systems) + 1) + "|"]
    for step in _steps(results):
        best = min(found[step]["seconds"] for found in results.values() if step in found)
        cells = [_cell(results[name].get(step), best) for name in systems]
        lines.append(f"| {step} | {' | '.join(cells)} |")
    return "\n".join(lines)


def aims_table(results: Results) -> str:
    """Every aim with its limit and what was measured; a miss is called one."""
    lines = ["| aim | at most | measured | |", "|---|---|---|---|"]
    for aim in AIMS:
        ratio = aim.ratio(results)
        if ratio is not None:
            verdict = "met" if ratio <= aim.limit else "**missed**"
            lines.append(f"| {aim.text} | {aim.limit:g} x | {ratio:.4g} x | {verdict} |")
    return "\n".join(lines)


def chart(results: Results, path: Path) -> bool:
    """Draw the seconds of each step as bars; False when matplotlib is not there."""
    try:
        import matplotlib
    except ImportError:
        print("no chart: matplotlib is not installed")
        return False
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    steps = [step for step in _steps(results) if sum(step in found for found in results.values()) > 1]
    columns = min(4, max(1, len(steps)))
    rows = max(1, math.ceil(len(steps) / columns))
    figure, axes = plt.subplots(
        rows, columns, figsize=(3.6 * columns, 2.9 * rows), constrained_layout=True, squeeze=False
    )
    for axis in axes.flat[len(steps) :]:
        axis.set_axis_off()
    for axis, step in zip(axes.flat, steps, strict=False):
        names = [name for name in results if step in results[name]]
        seconds = [results[name][step]["seconds"] for name in names]
        colours = ["#1f6feb" if name.startswith("dbt-hudi") else "#b0b8c4" for name in names]
        bars = axis.barh(names[::-1], seconds[::-1], color=colours[::-1])
        axis.bar_label(bars, fmt="%.1f", padding=2, fontsize=8)
        axis.set_title(f"{step} (s)", fontsize=10)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0.18)
    figure.savefig(path, dpi=100)
    return True


def _steps(results: Results) -> list[str]:
    return list(dict.fromkeys(step for found in results.values() for step in found))


def _cell(row: object, best: float) -> str:
    if not isinstance(row, dict):
        return ""
    jobs = f" ({row['jobs']:.0f})" if row["jobs"] else ""
    seconds = f"{row['seconds']:.2f}"
    return f"**{seconds}**{jobs}" if row["seconds"] == best else f"{seconds}{jobs}"


if __name__ == "__main__":
    source = Path(sys.argv[1])
    report(json.loads(source.read_text("utf-8")), source.with_suffix(".png"))

"""The tables of seconds and of aims, in Markdown, and the bar chart.

python -m benchmarks.report benchmarks/results.json       again, from the results of a run
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping
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


def seconds_table(
    results: Results,
    title: str = "seconds (Spark jobs)",
    systems: Mapping[str, str] | None = None,
    steps: Mapping[str, str] | None = None,
) -> str:
    """Seconds and Spark jobs of every step, a column a system; the fastest of several is bold.

    Args:
        results: What was measured.
        title: Words of the first column.
        systems: Systems in the table, each with its words; None for all by name.
        steps: Steps in it, likewise.
    """
    systems = systems or {name: name for name in results}
    steps = steps or {step: step for step in _steps(results)}
    lines = [f"| {title} | {' | '.join(systems.values())} |", "|---" * (len(systems) + 1) + "|"]
    for step, words in steps.items():
        row = [results.get(name, {}).get(step) for name in systems]
        seconds = [each["seconds"] for each in row if each]
        if seconds:
            best = min(seconds) if len(seconds) > 1 else None
            cells = [_cell(each, best) if each else "" for each in row]
            lines.append(f"| {words} | {' | '.join(cells)} |")
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


def _cell(measured: Mapping[str, float], best: float | None) -> str:
    seconds = measured["seconds"]
    text = f"{seconds:.2f}" if seconds < 3 else f"{seconds:.1f}"
    return (f"**{text}**" if seconds == best else text) + f" ({measured['jobs']:.0f})" * bool(
        measured["jobs"]
    )


if __name__ == "__main__":
    source = Path(sys.argv[1])
    report(json.loads(source.read_text("utf-8")), source.with_suffix(".png"))

"""The table of ratios and the bar chart."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

Results = Mapping[str, Mapping[str, Mapping[str, float]]]


def print_table(results: Results) -> None:
    """Seconds, jobs and the ratio to the best system of each step (best of the others = 1)."""
    steps = list(dict.fromkeys(step for found in results.values() for step in found))
    width = max((len(name) for name in results), default=8) + 2
    for step in steps:
        rows = {name: found[step] for name, found in results.items() if step in found}
        print(f"\n{step}")
        for name, row in sorted(rows.items(), key=lambda item: item[1]["seconds"]):
            best = min(
                (other["seconds"] for peer, other in rows.items() if not _same_maker(peer, name)),
                default=None,
            )
            ratio = "" if not best else f"{row['seconds'] / best:6.2f} x the fastest other"
            print(f"  {name:<{width}}{row['seconds']:>8.2f} s{row['jobs']:>5.0f} jobs  {ratio}")


def chart(results: Results, path: Path) -> bool:
    """Draw the seconds of each step as bars; False when matplotlib is not there."""
    try:
        import matplotlib
    except ImportError:
        print("no chart: matplotlib is not installed")
        return False
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    steps = list(dict.fromkeys(step for found in results.values() for step in found))
    figure, axes = plt.subplots(
        1, max(1, len(steps)), figsize=(3.2 * max(1, len(steps)), 4.2), constrained_layout=True
    )
    for axis, step in zip([axes] if len(steps) <= 1 else list(axes), steps, strict=False):
        names = [name for name in results if step in results[name]]
        seconds = [results[name][step]["seconds"] for name in names]
        colours = ["#1f6feb" if name.startswith("dbt-hudi") else "#b0b8c4" for name in names]
        bars = axis.barh(names[::-1], seconds[::-1], color=colours[::-1])
        axis.bar_label(bars, fmt="%.1f", padding=2, fontsize=8)
        axis.set_title(f"{step} (s)", fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0.18)
    figure.savefig(path, dpi=110)
    return True


def _same_maker(one: str, other: str) -> bool:
    return one.split()[0] == other.split()[0]

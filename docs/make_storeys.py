"""Draw the storeys of the code from the import contracts.

`python docs/make_storeys.py` writes `docs/pictures/storeys.svg`; a test fails when the picture is out of date.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "pictures" / "storeys.svg"
CONTRACTS = ("pyproject.toml", "tools/adapter_imports.toml")
# Package of the contract, title, fill and stroke; the top storey first.
STOREYS = (
    ("dbt.adapters.hudi", "adapter: what dbt calls", "#fdeee6", "#d9663a"),
    ("hudi_engine.server", "server/: clients of HiveServer2", "#f3e8f7", "#8a4fa8"),
    ("hudi_engine.spark", "spark/: whatever needs a SparkSession", "#fdf6e0", "#c99a1f"),
    ("hudi_engine.table", "table/: one table on its storage, no Spark", "#e6f3ee", "#2f8f6b"),
    ("hudi_engine.format", "format/: bytes and names, no lock", "#e8eef9", "#4a6fb5"),
)
WIDTH, ROW, GAP, PAD, TITLE = 860, 26, 6, 12, 24
_CONTRACT = re.compile(r'containers = \["([\w.]+)"\]\nlayers = \[\n(.*?)\n\]', re.DOTALL)


def floors() -> dict[str, list[list[str]]]:
    """Return the floors of each storey, the top one first, each with its rooms."""
    text = "".join((ROOT / name).read_text(encoding="utf-8") for name in CONTRACTS)
    return {
        package: [re.split(r" [|:] ", floor) for floor in re.findall(r'"([^"]+)"', layers)]
        for package, layers in _CONTRACT.findall(text)
    }


def picture() -> str:
    """Return the picture as SVG."""
    found, parts, top = floors(), [], PAD
    for package, title, fill, stroke in STOREYS:
        rows = found.get(package, [])
        height = TITLE + len(rows) * (ROW + GAP) + GAP
        parts.append(
            f'<rect x="{PAD}" y="{top}" width="{WIDTH - 2 * PAD}" height="{height}" rx="8" fill="{fill}" '
            f'stroke="{stroke}"/>'
            f'<text x="{2 * PAD}" y="{top + 17}" font-weight="600" fill="{stroke}">{title}</text>'
        )
        for number, rooms in enumerate(rows):
            parts.extend(_floor(rooms, top + TITLE + number * (ROW + GAP), stroke))
        top += height + GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top + PAD}" '
        f'viewBox="0 0 {WIDTH} {top + PAD}" font-family="system-ui, sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _floor(rooms: list[str], top: int, stroke: str) -> list[str]:
    """Draw the rooms of a floor side by side."""
    room_width = (WIDTH - 4 * PAD - (len(rooms) - 1) * GAP) / len(rooms)
    drawn = []
    for number, room in enumerate(rooms):
        left = 2 * PAD + number * (room_width + GAP)
        drawn.append(
            f'<rect x="{left:.1f}" y="{top}" width="{room_width:.1f}" height="{ROW}" rx="4" fill="#ffffff" '
            f'stroke="{stroke}" stroke-opacity="0.5"/>'
            f'<text x="{left + room_width / 2:.1f}" y="{top + 17}" text-anchor="middle" fill="#333">{room}</text>'
        )
    return drawn


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")

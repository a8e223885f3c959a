"""Unpacking golden tables as they were: a zip keeps times to two seconds, and Hudi 1.x goes by them."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

TABLES = Path(__file__).resolve().parent / "tables"
NAMES = tuple(sorted(file.stem for file in TABLES.glob("*.zip")))
REFUSED = tuple(sorted(file.stem for file in TABLES.glob("refused/*.zip")))
"""Tables with deletes of Hudi before 0.14 in their logs, or with vectors."""


def description(name: str) -> dict[str, Any]:
    """Give what was recorded about a golden table, Hudi's answers among it."""
    place = TABLES / "refused" if name in REFUSED else TABLES
    content = json.loads((place / f"{name}.json").read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


def unpack(name: str, folder: Path) -> Path:
    """Unpack a golden table below a folder, with true modification times; gives its base folder."""
    place = TABLES / "refused" if name in REFUSED else TABLES
    with zipfile.ZipFile(place / f"{name}.zip") as archive:
        archive.extractall(folder)
    for file, modified_ms in description(name)["modified_ms"].items():
        os.utime(folder / file, ns=(modified_ms * 1_000_000,) * 2)
    return folder / name

"""Unpacking golden tables as they were: a zip keeps times to two seconds, and Hudi 1.x goes by them."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

TABLES = Path(__file__).resolve().parent / "tables"
NAMES = tuple(sorted(file.stem for file in TABLES.glob("*.zip")))


def description(name: str) -> dict[str, Any]:
    """Give what was recorded about a golden table, Hudi's answers among it."""
    content = json.loads((TABLES / f"{name}.json").read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


def unpack(name: str, folder: Path) -> Path:
    """Unpack a golden table below a folder, with true modification times; gives its base folder."""
    with zipfile.ZipFile(TABLES / f"{name}.zip") as archive:
        archive.extractall(folder)
    for file, modified_ms in description(name)["modified_ms"].items():
        os.utime(folder / file, ns=(modified_ms * 1_000_000,) * 2)
    return folder / name

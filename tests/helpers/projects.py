"""What tests of commands over a dbt project share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

SNAPSHOT_OF_PEOPLE = """
{% snapshot kept %}
  {{ config(unique_key='id', strategy='check', check_cols=['name'], target_schema=schema) }} select * from {{ ref('people') }}
{% endsnapshot %}
"""


def where(project: Any) -> list[str]:
    """The options of dbt that find a project of dbt's own fixtures."""
    return ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]


def files(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file and folder below a path, with its time and its bytes."""
    found = {}
    for folder, _, names in os.walk(root):
        for each in (Path(folder), *(Path(folder) / name for name in names)):
            content = each.read_bytes() if each.is_file() else b""
            found[str(each.relative_to(root))] = (each.stat().st_mtime_ns, content)
    return found

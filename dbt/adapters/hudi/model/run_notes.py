"""Where the commits of a run come from: dbt's invocation, the node and its table, the version of its code, its inputs."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from dbt_common.events.contextvars import get_node_info
from dbt_common.invocation import get_invocation_id
from hudi_engine.format.config.own_keys import ORIGIN

from dbt.adapters.hudi.model.merge import BatchWindow

# Hudi takes keys with this start into the commit, unless hoodie.datasource.write.commitmeta.key.prefix is another.
(INVOCATION, NODE), GIT = ORIGIN, "_dbt_git_sha"
# The table by schema and name; a digest of the code; inputs as JSON, each with its newest instant.
TABLE, CHECKSUM, INPUTS = "_dbt_table", "_dbt_checksum", "_dbt_inputs"
# The tests before the commit, which it has passed, as JSON.
AUDITS = "_dbt_audits"
# Of a batch: the end of its window, and whether its run built the table.
BATCH_END, BUILDS = "_dbt_batch_end", "_dbt_batch_of_build"
_SHA = re.compile(r"^[0-9a-f]{40,64}$")


def notes_of_run(
    node: Mapping[str, Any],
    project_root: str | None,
    window: BatchWindow | None = None,
    *,
    table: str = "",
    inputs: Mapping[str, str] | None = None,
    audits: Collection[str] = (),
) -> dict[str, str]:
    """Return the notes of a node's commits, as options of its writes.

    Args:
        node: The node as dbt gives it to a materialization.
        project_root: Folder of the project; the working directory when None.
        window: That of the batch that runs; without bounds, or None, where none does.
        table: Schema and name of its table.
        inputs: Tables that it reads, by schema and name, and the newest instant of each when the node started.
        audits: Names of the tests that run before the commit.
    """
    end = None if window is None else window.end
    notes = {
        **origin(str(node.get("unique_id") or "")),
        TABLE: table,
        CHECKSUM: str((node.get("checksum") or {}).get("checksum") or ""),
        GIT: git_sha(project_root or ".", get_invocation_id()) or "",
        INPUTS: json.dumps(inputs, sort_keys=True) if inputs else "",
        AUDITS: json.dumps(sorted(audits)) if audits else "",
        BATCH_END: "" if end is None else end.isoformat(),
    }
    return {key: value for key, value in notes.items() if value}


def origin(node: str | None = None) -> dict[str, str]:
    """Return the notes of every commit: the run, and the node by its unique id, that which dbt is at in this thread when None."""
    found = str(get_node_info().get("unique_id") or "") if node is None else node
    return {INVOCATION: get_invocation_id(), **({NODE: found} if found else {})}


@lru_cache(maxsize=8)
def git_sha(folder: str, run: str = "") -> str | None:  # noqa: ARG001
    """Return the commit that is checked out around a folder, read from git's own files; None where there is none."""
    start = Path(folder).resolve()
    for parent in (start, *start.parents):
        place = parent / ".git"
        if place.exists():
            try:
                return _head(place)
            except (OSError, UnicodeDecodeError):
                return None
    return None


def _head(place: Path) -> str | None:
    """Return the commit that is checked out in a work tree, read from git's files so that no program is started."""
    if place.is_file():
        # a separate work tree has the place of its files in this one
        place = (place.parent / place.read_text().partition(":")[2].strip()).resolve()
    head = (place / "HEAD").read_text().strip()
    if not head.startswith("ref:"):
        return head if _SHA.match(head) else None
    name = head.partition(":")[2].strip()
    common = place / "commondir"
    shared = (place / common.read_text().strip()).resolve() if common.exists() else place
    for folder in (place, shared):
        if name.startswith("refs/") and ".." not in name and (folder / name).is_file():
            found = (folder / name).read_text().strip()
            return found if _SHA.match(found) else None
    packed = shared / "packed-refs"
    for line in packed.read_text().splitlines() if packed.is_file() else ():
        sha, _, ref = line.partition(" ")
        if ref.strip() == name and _SHA.match(sha):
            return sha
    return None

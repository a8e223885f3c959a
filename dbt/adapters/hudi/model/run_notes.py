"""Where the commits of a run come from: dbt's invocation, the node, the project's git commit."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from dbt_common.invocation import get_invocation_id

from dbt.adapters.hudi.model.merge import BatchWindow

# Hudi takes keys with this start into the commit, unless hoodie.datasource.write.commitmeta.key.prefix is another.
INVOCATION, NODE, GIT = "_dbt_invocation_id", "_dbt_node", "_dbt_git_sha"
# Of a batch: the end of its window, and whether its run built the table.
BATCH_END, BUILDS = "_dbt_batch_end", "_dbt_batch_of_build"
_SHA = re.compile(r"^[0-9a-f]{40,64}$")


def notes_of_run(node: str, project_root: str | None, window: BatchWindow | None = None) -> dict[str, str]:
    """Return the notes of a node's commits, as options of its writes.

    Args:
        project_root: Folder of the project; the working directory when None.
        window: That of the batch that runs; without bounds, or None, where none does.
    """
    end = None if window is None else window.end
    notes = {
        INVOCATION: get_invocation_id(),
        NODE: node,
        GIT: git_sha(project_root or ".", get_invocation_id()) or "",
        BATCH_END: "" if end is None else end.isoformat(),
    }
    return {key: value for key, value in notes.items() if value}


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

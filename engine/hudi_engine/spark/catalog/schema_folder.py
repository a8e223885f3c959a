"""What the folder of a schema holds, whoever made it and whether or not a catalog shows it."""

from __future__ import annotations

import re
from urllib.parse import unquote

from hudi_engine.format.storage.factory import open_storage

_DEFINITION = re.compile(r"^(.+)\.(?:table|view|function)\.json$")
_SOURCE = re.compile(r"^.+\.source\.json$")
_BEING_BUILT = re.compile(r"^\.(.+)\.rebuild-[0-9a-f]+$")


def held_in(folder: str) -> list[str]:
    """Return the names of what a schema's folder holds: tables, damaged and half built ones too, views, functions, other files.

    Notes of other writers' tables are left out, and so is the folder of Spark's own tables, which its catalog knows.

    Args:
        folder: The schema's folder; it need not be there.
    """
    storage = open_storage(folder)
    found = set()
    for each in storage.list(""):
        definition = None if each.is_dir else _DEFINITION.match(each.name)
        built = _BEING_BUILT.match(each.name) if each.is_dir else None
        if definition is not None:
            found.add(unquote(definition[1]))
        elif built is not None:
            found.add(built[1])
        elif each.name.startswith(".") or (not each.is_dir and _SOURCE.match(each.name)):
            continue
        elif not each.is_dir or (storage.list(each.path) and storage.exists(each.path)):
            # a store lists folders of nothing but other programs' marks, and says that they are not there
            found.add(each.name)
    return sorted(found)

"""Keys of Apache Hudi 0.15 and 1.2 that are no options of this engine, so that a misspelling can be told from them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

_FILE = "hudi_keys.txt"
"""One group after the other: what its keys begin with, a colon, and the ends of its keys (``-`` for nothing)."""


@cache
def hudi_keys() -> frozenset[str]:
    """Return the keys."""
    found, group = set(), ""
    for word in files(__package__).joinpath(_FILE).read_text(encoding="ascii").split():
        if word.endswith(":"):
            group = word[:-1]
        else:
            found.add(group if word == "-" else f"{group}.{word}")
    return frozenset(found)

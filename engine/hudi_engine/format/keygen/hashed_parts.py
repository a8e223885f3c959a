"""Which parts of a record key Apache Hudi's bucket index hashes; releases differ where values hold ``,`` or ``:``.

Source: ``BucketIdentifier`` and ``KeyGenUtils.extractRecordKeysByFields`` of Hudi 0.15.0 and 1.2.0, asked for many keys.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from hudi_engine.format.keygen.complex_key import EMPTY_PLACEHOLDER, NULL_PLACEHOLDER

Parts = list[str | None]


class BucketForm(str, Enum):
    """Whose way of hashing a record key the buckets of a table are of."""

    RELEASE_1 = "Apache Hudi 1"
    RELEASE_0 = "Apache Hudi 0"


def hashed_parts(key: str, fields: Collection[str], form: BucketForm) -> Parts:
    """Return the values of a key that are hashed, in the order of the key."""
    return _of_release_0(key, fields) if form is BucketForm.RELEASE_0 else _of_release_1(key, fields)


def _of_release_0(key: str, fields: Collection[str]) -> Parts:
    """Divide at every comma; a part whose name is no field counts for nothing, so nothing may be left of a time of day."""
    if ":" not in key:
        return [key]
    pieces = key.split(",")
    while pieces and not pieces[-1]:
        # As Java's split does.
        pieces.pop()
    found: Parts = []
    for piece in pieces:
        name, colon, value = piece.partition(":")
        if not colon:
            found.append(name)
        elif name in fields:
            found.append(_value(value))
    return found


def _of_release_1(key: str, fields: Collection[str]) -> Parts:
    """Return a key without both marks as one value; otherwise a value ends at the last comma before the next name."""
    if "," not in key or ":" not in key:
        return [key]
    found: Parts = []
    start = 0
    while 0 <= start < len(key):
        colon = key.find(":", start)
        if colon < 0:
            break
        end = _end_of_value(key, colon)
        if key[start:colon] in fields:
            found.append(_value(key[colon + 1 :] if end < 0 else key[colon + 1 : end]))
        start = end + 1 if end >= 0 else -1
    return found or [key]


def _end_of_value(key: str, colon: int) -> int:
    following = key.find(":", colon + 1)
    while following > 0:
        comma = key.rfind(",", colon + 1, following)
        if comma >= 0:
            return comma
        following = key.find(":", following + 1)
    return -1


def _value(text: str) -> str | None:
    if text == NULL_PLACEHOLDER:
        return None
    return "" if text == EMPTY_PLACEHOLDER else text

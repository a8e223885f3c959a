"""What an ORDER BY says, key by key."""

from __future__ import annotations

import re

from dbt.adapters.hudi.sql.statements import split_outside

_KEY = re.compile(r"(?is)\A\s*(.*?)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?\s*\Z")


def order_keys(clause: str) -> list[dict[str, str | bool]]:
    """Return the keys of an ORDER BY, with or without those words: ``expression``, ``descending`` and ``nulls_last``.

    As in Spark, nulls come first of an ascending key and last of a descending one unless it says otherwise.
    """
    text = re.sub(r"(?i)\A\s*order\s+by\s+", "", clause)
    found: list[dict[str, str | bool]] = []
    for start, end in split_outside(text, 0, len(text), ","):
        matched = _KEY.match(text[start:end])
        expression, order, nulls = matched.groups() if matched else ("", None, None)
        if expression:
            descending = (order or "").lower() == "desc"
            nulls_last = descending if nulls is None else nulls.lower() == "last"
            found.append({"expression": expression, "descending": descending, "nulls_last": nulls_last})
    return found

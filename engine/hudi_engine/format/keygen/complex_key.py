"""Record keys made of several fields: ``field1:value1,field2:value2``.

Serves every table version (Hudi table spec, record key encoding).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

NULL_PLACEHOLDER = "__null__"
EMPTY_PLACEHOLDER = "__empty__"


def complex_keys(columns: Sequence[tuple[str, pa.StringArray]]) -> pa.StringArray:
    """Join the texts of several fields to record keys.

    Returns:
        The keys; null where every field is null or empty, for such a row has no key.
    """
    parts = []
    usable = None
    for name, texts in columns:
        value = pc.fill_null(texts, NULL_PLACEHOLDER)
        value = pc.if_else(pc.equal(value, ""), EMPTY_PLACEHOLDER, value)
        parts.append(pc.binary_join_element_wise(pa.scalar(f"{name}:"), value, ""))
        filled = pc.fill_null(pc.not_equal(texts, ""), False)
        usable = filled if usable is None else pc.or_(usable, filled)
    keys = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, ",")
    return pc.if_else(usable, keys, pa.scalar(None, pa.string()))

"""HFile data block: a complete HFile, sorted by record key, whose values are bare Avro datums.

Source: Hudi table format, HFile data block.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.hfile.file import HFile
from hudi_engine.format.logformat.blocks.data_avro import decode_datums

_KEY_COLUMN = "key"
"""A text column of this name has no values in the datums: Hudi's writer empties it, the cell's key represents them."""
_ANY_TEXT = pc.CastOptions(pa.string(), allow_invalid_utf8=True)


def decode(content: memoryview, schema: str) -> pa.Table:
    """Return rows of the block, in the order of their keys."""
    parts, total = [], 0
    keys: list[bytes] = []
    places: list[tuple[int, int]] = []
    for block in HFile.of_bytes(content).blocks():
        keys.extend(block.body[start:end] for start, end in block.keys)
        places.extend((total + start, total + end) for start, end in block.values)
        parts.append(block.body)
        total += len(block.body)
    bounds = np.array(places, np.int64).reshape(-1, 2)
    starts, ends = (np.ascontiguousarray(bounds[:, side]) for side in (0, 1))
    rows = decode_datums(pa.py_buffer(b"".join(parts)), starts, ends, schema)
    return _with_keys(rows, keys)


def _with_keys(rows: pa.Table, keys: list[bytes]) -> pa.Table:
    """Fill the column that Hudi's writer empties from the keys of the cells, as Hudi's reader does."""
    place = rows.schema.get_field_index(_KEY_COLUMN)
    if place < 0 or not pa.types.is_string(rows.schema.field(place).type):
        return rows
    emptied = pc.fill_null(pc.equal(rows.column(place), ""), False)
    if not pc.any(emptied).as_py():
        return rows
    keyed = pa.array(keys, pa.binary()).cast(options=_ANY_TEXT)
    return rows.set_column(place, rows.schema.field(place), pc.if_else(emptied, keyed, rows.column(place)))

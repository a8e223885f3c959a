"""Keys of a secondary index: the value of a column and the record key of each row.

Source: Hudi metadata table format, secondary index. A key is the value, a dollar sign and the record key, both with a backslash
before the signs that divide them. Values have the text of the number that Avro stores: a date is its days since 1970.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

NULL_VALUE = "\0"
"""A null in a key."""
INDEXED_TYPES = "text, whole numbers, date and timestamp"
_ESCAPED = ("\\", "$", "\0")
_HASHED = r"(?s)^((?:[^\\$]|\\.)*\$).*$"


def is_indexed_type(kind: pa.DataType) -> bool:
    """Return whether a secondary index of a column of a type can be kept: other types have a text of their own in Java."""
    is_utc = pa.types.is_timestamp(kind) and kind.tz is not None
    return bool(is_utc or pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_date32(kind))


def has_same_texts(one: pa.DataType, other: pa.DataType) -> bool:
    """Return whether a column keeps the texts of its values when its type changes."""
    plain = [pa.types.is_string(kind) or pa.types.is_integer(kind) for kind in (one, other)]
    return one == other or all(plain)


def key_prefixes(values: pa.Array) -> pa.Array:
    """Return what the keys of rows begin with that have some values: the value and the sign after it."""
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    texts = _escaped(values.cast(pa.string())).fill_null(NULL_VALUE)
    return pc.binary_join_element_wise(texts, "$", "")


def secondary_keys(values: pa.Array, record_keys: pa.Array) -> pa.Array:
    """Return the keys of some rows, as bytes."""
    keys = _escaped(record_keys.cast(pa.string()))
    return pc.binary_join_element_wise(key_prefixes(values), keys, "").cast(pa.binary())


class IndexedRows(NamedTuple):
    """Values of the indexed column and record keys of some rows."""

    values: pa.Array
    keys: pa.Array

    def secondary_keys(self, some: npt.NDArray[np.bool_] | None = None) -> pa.Array:
        """Return the keys of the rows, or of some of them, in the index."""
        mask = None if some is None else pa.array(some)
        return secondary_keys(*(each if mask is None else each.filter(mask) for each in self))


def changed_keys(before: IndexedRows, after: IndexedRows) -> tuple[pa.Array, pa.Array]:
    """Return the keys of the index that a change of a file group's rows removes, and those that it adds.

    Rows are compared by their record keys, so that keys of the index are made for those alone that differ.
    """
    places = pc.index_in(after.keys, before.keys)
    known = places.drop_null().to_numpy()
    if before.values.type != after.values.type or len(np.unique(known)) < len(known):
        old, new = before.secondary_keys(), after.secondary_keys()  # a record key is there twice
        return old.filter(pc.invert(pc.is_in(old, new))), new.filter(pc.invert(pc.is_in(new, old)))
    stored = before.values.take(places)
    equal = pc.equal(stored, after.values).fill_null(False)
    both_null = pc.and_(places.is_valid(), pc.and_(stored.is_null(), after.values.is_null()))
    same = pc.or_(equal, both_null)
    gone = np.ones(len(before.keys), bool)
    gone[places.filter(same).to_numpy()] = False
    return before.secondary_keys(gone), after.secondary_keys(~np.asarray(same))


def _escaped(texts: pa.Array) -> pa.Array:
    for sign in _ESCAPED:
        texts = pc.replace_substring(texts, sign, f"\\{sign}")
    return texts


def hashed_parts(keys: pa.Array) -> pa.Array:
    """Return what of each key decides on its file group in version V2 of the index: the value and the sign after it."""
    return pc.replace_substring_regex(keys, _HASHED, r"\1")


def split_secondary_key(key: str) -> tuple[str | None, str]:
    """Return the value and the record key of a key."""
    end = 0
    while end < len(key) and key[end] != "$":
        end += 2 if key[end] == "\\" else 1
    value = key[:end]
    return None if value == NULL_VALUE else _plain(value), _plain(key[end + 1 :])


def _plain(text: str) -> str:
    found, place = [], 0
    while place < len(text):
        place += text[place] == "\\" and place + 1 < len(text)
        found.append(text[place])
        place += 1
    return "".join(found)

"""Which keys are the same as which others, in as much memory as a worker has.

Arrow's hash tables take up to 128 bytes a key while they grow, beside a copy of the keys. Where the memory of workers is limited,
keys are looked up in one part of the others after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.merge.key_table import KeyTable
from hudi_engine.format.worker import memory_limit

AT_ONCE = 2**18
"""Keys of one hash table where memory is limited: it takes some 30 MiB."""
_MANY = 16_384
"""Arrow's hash table of fewer keys stays in the caches of a core."""


def are_distinct(keys: pa.Array | pa.ChunkedArray) -> bool:
    """Tell whether no two keys are the same; nulls are the same key.

    Arrow counts different values in twice the time that it takes to list them.
    """
    if memory_limit() is None:
        return len(pc.unique(keys)) == len(keys)
    parts = list(_parts(keys))
    if any(len(pc.unique(part)) < len(part) for part in parts):
        return False
    return not any(pc.any(pc.is_in(part, value_set=other)).as_py() for part, other in combinations(parts, 2))


def places_in(keys: pa.Array | pa.ChunkedArray, others: pa.Array) -> pa.Array:
    """Return for each key its place among others, null where it is not one of them."""
    if memory_limit() is None or len(others) <= AT_ONCE:
        return _places(keys, others)
    found = pa.nulls(len(keys), pa.int32())
    start = 0
    for part in _parts(others):
        found = pc.coalesce(found, pc.add(_places(keys, part), pa.scalar(start, pa.int32())))
        start += len(part)
    return found


def _places(keys: pa.Array | pa.ChunkedArray, others: pa.Array) -> pa.Array:
    if min(len(keys), len(others)) >= _MANY:
        found = _places_by_table(keys, others)
        if found is not None:
            return found
    found = pc.index_in(keys, value_set=others, skip_nulls=True)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _places_by_table(keys: pa.Array | pa.ChunkedArray, others: pa.Array) -> pa.Array | None:
    table = KeyTable.of(others)
    if table is None:
        return None
    pieces = keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]
    places = []
    for piece in pieces:
        if len(piece):
            places.append(table.places(piece))
            if places[-1] is None:
                return None
    return pa.concat_arrays(places)


def _parts(keys: pa.Array | pa.ChunkedArray) -> Iterator[pa.Array]:
    for start in range(0, len(keys), AT_ONCE):
        part = keys.slice(start, AT_ONCE)
        yield part.combine_chunks() if isinstance(part, pa.ChunkedArray) else part

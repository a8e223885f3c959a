"""Which keys are the same as which others, in as much memory as a worker has.

Arrow's hash tables take up to 128 bytes a key while they grow, beside a copy of the keys. Where the memory of workers is limited,
keys are looked up in one part of the others after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.worker import memory_limit

AT_ONCE = 2**18
"""Keys of one hash table where memory is limited: it takes some 30 MiB."""


def are_distinct(keys: pa.Array | pa.ChunkedArray) -> bool:
    """Tell whether no two keys are the same; nulls are the same key."""
    if memory_limit() is None:
        return bool(pc.count_distinct(keys, mode="all").as_py() == len(keys))
    parts = list(_parts(keys))
    if any(pc.count_distinct(part, mode="all").as_py() < len(part) for part in parts):
        return False
    return not any(pc.any(pc.is_in(part, value_set=other)).as_py() for part, other in combinations(parts, 2))


def places_in(keys: pa.Array | pa.ChunkedArray, others: pa.Array) -> pa.Array:
    """Return for each key its place among others, null where it is not one of them.

    Args:
        keys: The keys that are looked for; none of them is null.
        others: Where they are looked for. Null is no key.
    """
    if memory_limit() is None or len(others) <= AT_ONCE:
        return _places(keys, others)
    found = pa.nulls(len(keys), pa.int32())
    start = 0
    for part in _parts(others):
        found = pc.coalesce(found, pc.add(_places(keys, part), pa.scalar(start, pa.int32())))
        start += len(part)
    return found


def _places(keys: pa.Array | pa.ChunkedArray, others: pa.Array) -> pa.Array:
    found = pc.index_in(keys, value_set=others, skip_nulls=True)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _parts(keys: pa.Array | pa.ChunkedArray) -> Iterator[pa.Array]:
    for start in range(0, len(keys), AT_ONCE):
        part = keys.slice(start, AT_ONCE)
        yield part.combine_chunks() if isinstance(part, pa.ChunkedArray) else part

"""Put cells into an HFile, or take some out: blocks that no such cell falls into are copied as they are stored.

A file of millions of cells is made again in the time of its changed blocks and of a copy.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping

import pyarrow as pa

from hudi_engine.format.hfile.file import HFile, StoredBlock
from hudi_engine.format.hfile.writer import DataBlock, HFileContent, data_blocks


def merged_content(
    base: HFile, cells: Mapping[bytes, bytes], removed: Collection[bytes]
) -> HFileContent | None:
    """Return the content of an HFile with cells put in, in place of those with their keys, and others taken out.

    Args:
        base: The file, in memory: each of its blocks is looked at.
        removed: Keys of cells that are taken out, unless they are put in.

    Returns:
        None where blocks cannot be copied, as another writer gave them checksums or another form, or where the last one goes.
    """
    blocks = base.stored_blocks() if base.can_be_copied else []
    if not blocks or any(each.has_checksums for each in blocks):
        return None
    count, last = base.entries, b""
    made: dict[int, list[DataBlock]] = {}
    for number, keys in _by_block(blocks, {*cells, *removed}).items():
        found = dict(base.cells_of(number))
        before = len(found)
        for key in keys:
            found.pop(key, None)
        found.update({key: cells[key] for key in keys if key in cells})
        count += len(found) - before
        ordered = sorted(found)
        values = pa.array([found[key] for key in ordered], pa.binary())
        made[number] = list(data_blocks(pa.array(ordered, pa.binary()), values))
        last = max([last, *ordered[-1:]])
    if len(blocks) - 1 in made and not made[len(blocks) - 1]:
        return None
    return HFileContent(_joined(base, blocks, made), count, last, base.average_lengths)


def _by_block(blocks: list[StoredBlock], keys: Iterable[bytes]) -> dict[int, set[bytes]]:
    """Return keys by the number of the block that they fall into; the last block is there in any case, as it says the last key."""
    found: dict[int, set[bytes]] = {len(blocks) - 1: set()}
    first_keys = [each.first for each in blocks]
    for key in keys:
        found.setdefault(max(bisect_right(first_keys, key) - 1, 0), set()).add(key)
    return found


def _joined(
    base: HFile, blocks: list[StoredBlock], made: Mapping[int, list[DataBlock]]
) -> Iterator[DataBlock]:
    for number, each in enumerate(blocks):
        if number in made:
            yield from made[number]
        else:
            yield DataBlock(each.first, each.plain, base.stored(each))

"""The index types and what each means for a write, behind one small value."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_engine.format.config.declared.write_options import IndexOptions
from hudi_engine.format.config.enums import BLOOM_INDEXES, RECORD_INDEXES, IndexType
from hudi_engine.format.config.options import Options
from hudi_engine.format.index.buckets import BucketForm
from hudi_engine.table.lookup.tagging import KeyPruning

MOVES = {
    IndexType.GLOBAL_SIMPLE: IndexOptions.SIMPLE_MOVES_PARTITION,
    IndexType.GLOBAL_BLOOM: IndexOptions.BLOOM_MOVES_PARTITION,
    **dict.fromkeys(RECORD_INDEXES, IndexOptions.RECORD_MOVES_PARTITION),
}
"""The global index types, each with the option that decides whether a row that arrives with another partition moves there."""


@dataclass(frozen=True)
class IndexKind:
    """How an index type finds file groups.

    Args:
        name: Hudi's name, e.g. ``GLOBAL_BLOOM``.
        is_global: A key is unique over all partitions.
        uses_footers: Files are skipped by key range and Bloom filter.
        buckets: Number of buckets of a partition, None when the index is not a bucket index.
        moves_partition: Global only: a key that arrives with another partition moves there.
        form: Whose way of hashing keys the buckets are of.
    """

    name: IndexType
    is_global: bool = False
    uses_footers: bool = False
    buckets: int | None = None
    moves_partition: bool = True
    form: BucketForm = BucketForm.RELEASE_1

    def pruning(self, options: Options) -> KeyPruning:
        """Return the footer pruning rule of this index."""
        return KeyPruning(self.uses_footers, options[IndexOptions.PRUNE_BY_RANGES])


def index_kind(options: Options) -> IndexKind:
    """Return the index of a write: what the options (of call and table) say, else SIMPLE."""
    kind = IndexType(options[IndexOptions.TYPE] or IndexType.SIMPLE)
    is_global = kind in MOVES
    return IndexKind(
        kind,
        is_global,
        kind in BLOOM_INDEXES,
        options[IndexOptions.BUCKETS] if kind is IndexType.BUCKET else None,
        options[MOVES[kind]] if is_global else True,
    )

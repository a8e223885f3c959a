"""The index types and what each means for a write, behind one small value."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_engine.config.enums import IndexType
from hudi_engine.config.options import Options
from hudi_engine.index.lookup.tagging import KeyPruning

_MOVES = {
    IndexType.GLOBAL_SIMPLE: "hoodie.simple.index.update.partition.path",
    IndexType.GLOBAL_BLOOM: "hoodie.bloom.index.update.partition.path",
}
"""The global types, and the option that says whether a key that arrives with another partition moves there."""


@dataclass(frozen=True)
class IndexKind:
    """How an index type finds file groups.

    Args:
        name: Hudi's name, e.g. ``GLOBAL_BLOOM``.
        is_global: A key is unique over all partitions.
        uses_footers: Files are skipped by key range and Bloom filter.
        buckets: Number of buckets of a partition, None when the index is not a bucket index.
        moves_partition: Global only: a key that arrives with another partition moves there.
    """

    name: IndexType
    is_global: bool = False
    uses_footers: bool = False
    buckets: int | None = None
    moves_partition: bool = True

    def pruning(self, options: Options) -> KeyPruning:
        """Return the footer pruning rule of this index."""
        return KeyPruning(self.uses_footers, options.bool("hoodie.bloom.index.prune.by.ranges"))


def index_kind(options: Options) -> IndexKind:
    """Return the index of a write: what the options (of call and table) say, else SIMPLE."""
    kind = IndexType(options.text("hoodie.index.type") or IndexType.SIMPLE)
    is_global = kind in _MOVES
    return IndexKind(
        kind,
        is_global,
        kind in (IndexType.BLOOM, IndexType.GLOBAL_BLOOM),
        options.int("hoodie.bucket.index.num.buckets") if kind is IndexType.BUCKET else None,
        options.bool(_MOVES[kind]) if is_global else True,
    )

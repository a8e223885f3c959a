"""The index types and what each means for a write, behind one small value."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_engine.config.options import Options
from hudi_engine.index.lookup.tagging import KeyPruning


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

    name: str
    is_global: bool = False
    uses_footers: bool = False
    buckets: int | None = None
    moves_partition: bool = True

    def pruning(self, options: Options) -> KeyPruning:
        """Return the footer pruning rule of this index."""
        return KeyPruning(self.uses_footers, options.bool("hoodie.bloom.index.prune.by.ranges"))


def index_kind(options: Options) -> IndexKind:
    """Return the index of a write: what the options (of call and table) say, else SIMPLE."""
    name = options.text("hoodie.index.type") or "SIMPLE"
    return {
        "SIMPLE": lambda: IndexKind("SIMPLE"),
        "BLOOM": lambda: IndexKind("BLOOM", uses_footers=True),
        "GLOBAL_SIMPLE": lambda: IndexKind(
            "GLOBAL_SIMPLE", True, moves_partition=options.bool("hoodie.simple.index.update.partition.path")
        ),
        "GLOBAL_BLOOM": lambda: IndexKind(
            "GLOBAL_BLOOM",
            True,
            True,
            moves_partition=options.bool("hoodie.bloom.index.update.partition.path"),
        ),
        "BUCKET": lambda: IndexKind("BUCKET", buckets=options.int("hoodie.bucket.index.num.buckets")),
    }[name]()

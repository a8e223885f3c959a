"""Looking keys up in the record index of the metadata table, so that only the files that hold some are looked through."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from hudi_engine.format.metadata.record_index import locations
from hudi_engine.format.metadata.records import MetadataPartition
from hudi_engine.table.data_skipping.plan import Step
from hudi_engine.table.data_skipping.trusted import has_partition, trusted_metadata
from hudi_engine.table.lookup.unit import PartitionUnit, lookup_keys
from hudi_engine.table.state import TableState

logger = logging.getLogger(__name__)


def by_record_index(
    state: TableState, units: Mapping[str, PartitionUnit], batch: pa.Table
) -> dict[str, PartitionUnit]:
    """Return the partitions of a write with the file groups that hold keys of the batch, as the record index has them.

    The keys of these files are still read, as a merge needs the places of the rows. A key that a log has deleted is not in the
    index: it is a new key, as in Apache Hudi.

    Args:
        units: All partitions of the table, by path.
    """
    found = dict(units)
    if MetadataPartition.RECORD_INDEX.value not in state.config.metadata_partitions:
        return found
    metadata = trusted_metadata(state)
    if metadata is None or not has_partition(metadata, MetadataPartition.RECORD_INDEX):
        return found
    holding: dict[str, set[str]] = {}
    for _, (partition, file_id) in locations(metadata, lookup_keys(batch).drop_null().unique()):
        holding.setdefault(partition, set()).add(file_id)
    seen, kept = sum(len(unit.slices) for unit in units.values()), sum(map(len, holding.values()))
    step = Step(MetadataPartition.RECORD_INDEX.value, "file groups", seen, kept)
    logger.info(
        "%s: the keys of the batch are looked for in %d file groups: %s", state.storage.base, kept, step
    )
    return {path: replace(unit, holding=frozenset(holding.get(path, ()))) for path, unit in found.items()}

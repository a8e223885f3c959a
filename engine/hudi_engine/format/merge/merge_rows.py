"""Merging aligned rows: a stored row and the incoming row with its key, many pairs at once (copy-on- write)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.merge.entries import Entries, plain_entries
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.merge.ordering import is_default
from hudi_engine.format.schema.meta_fields import RECORD_KEY


@dataclass(frozen=True)
class MergedRows:
    """Outcome for each pair.

    Attributes:
        rows: The row that results; meaningless where ``deleted``.
        deleted: Where the key is deleted.
        changed: Where something happened; elsewhere the stored row stays as it is.
    """

    rows: pa.Table
    deleted: pa.BooleanArray
    changed: pa.BooleanArray


def merge_rows(
    old: pa.Table, new: pa.Table, config: TableConfig, deletes: pa.BooleanArray | None = None
) -> MergedRows:
    """Merge incoming rows into stored ones, pair by pair, by the table's merge mode.

    Args:
        new: Incoming rows with the same keys in the same order; same columns as ``old``.
    """
    fields = [name for name in config.ordering_fields if name in new.column_names]
    incoming = _incoming(new, fields, deletes)
    stored = plain_entries(old, old.column(RECORD_KEY), None, None)
    rule = merge_rule(config)
    wins = rule.first(stored, incoming, fields)
    merged = rule.merge(stored, incoming, fields)
    changed = np.ones(len(incoming), dtype=bool) if rule.composes else wins
    return MergedRows(merged.rows, pa.array(merged.deleted & changed), pa.array(changed))


def _incoming(new: pa.Table, fields: list[str], deletes: pa.BooleanArray | None) -> Entries:
    if deletes is None:
        return plain_entries(new, new.column(RECORD_KEY), None, None)
    deleted = np.asarray(deletes.fill_null(False)).astype(bool)
    always = deleted & is_default([new.column(name) for name in fields]) if fields else deleted
    return plain_entries(new, new.column(RECORD_KEY), deleted, always)

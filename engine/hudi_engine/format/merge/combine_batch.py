"""One row a key within one incoming batch, before the table is looked at."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.merge.delete_marker import delete_mask
from hudi_engine.format.merge.entries import plain_entries
from hudi_engine.format.merge.key_sets import are_distinct
from hudi_engine.format.merge.modes.fold import as_first_named, fold
from hudi_engine.format.merge.modes.registry import merge_rule
from hudi_engine.format.merge.modes.rule import MergeRule
from hudi_engine.format.merge.ordering import is_default, ordering_ranks
from hudi_engine.format.merge.rows_at import taken
from hudi_engine.format.schema.meta_fields import RECORD_KEY

_POSITION = "__hudi_position"


def combine_batch(table: pa.Table, config: TableConfig) -> pa.Table:
    """Combine the rows of one incoming batch that have the same record key.

    The greater ordering value wins, on equal values the later row; without ordering fields the later row. In
    partial update modes the nulls of the winner are filled from the others.
    """
    rule = merge_rule(config)
    keys = table.column(RECORD_KEY)
    if are_distinct(keys):
        return table
    fields = [name for name in config.ordering_fields if name in table.column_names]
    if len(fields) < len(config.ordering_fields):
        fields = []
    deletes = delete_mask(table, config)
    deleted = np.zeros(table.num_rows, dtype=bool) if deletes is None else np.asarray(deletes)
    always = deleted & is_default([table.column(name) for name in fields]) if fields else deleted
    if not rule.sees_whole_rows:
        batch_rule = MergeRule(compares=bool(fields))
        index_only = table.select(fields).append_column(_POSITION, pa.array(np.arange(table.num_rows)))
        winners = fold(plain_entries(index_only, keys, deleted, always), batch_rule, fields)
        return taken(table, np.sort(winners.rows.column(_POSITION).to_numpy()))
    rows, sorts = table, bool(fields) and not rule.compares
    if sorts:
        # The newer write wins column by column; within a batch "newer" is stated by the ordering fields.
        order = np.lexsort(
            (np.arange(table.num_rows), *reversed(ordering_ranks([table.column(name) for name in fields])))
        )
        rows, deleted, always = taken(table, order), deleted[order], always[order]
    folded = fold(plain_entries(rows, rows.column(RECORD_KEY), deleted, always), rule, fields)
    return (as_first_named(keys, folded) if sorts else folded).rows

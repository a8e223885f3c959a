"""The order of rows in the files of a bulk load."""

from __future__ import annotations

import pyarrow as pa

from hudi_engine.format.config.declared.write_options import WriteOptions
from hudi_engine.format.config.enums import BulkSortMode
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.layout.layout import RowLayout
from hudi_engine.format.schema.meta_fields import RECORD_KEY

KEY_SORTS = (BulkSortMode.GLOBAL_SORT, BulkSortMode.PARTITION_SORT)
"""Values of ``hoodie.bulkinsert.sort.mode`` that need the record key."""
BY_KEY = RowLayout((RECORD_KEY,))
"""The order of those within a partition."""


def bulk_layout(options: Options, config: TableConfig, schema: pa.Schema) -> RowLayout:
    """Return the row order of a bulk load in a partition: by the sort columns, else by key if the sort mode is one of KEY_SORTS.

    Args:
        options: Sort columns and sort mode of bulk loads, ``hoodie.layout.optimize.*``.
    """
    columns = WriteOptions.BULK_INSERT_SORT_COLUMNS
    layout = RowLayout.from_options(options, columns=columns).fitted(schema, columns.key)
    by_key = options[WriteOptions.BULK_INSERT_SORT_MODE] in KEY_SORTS and config.record_key_fields
    return BY_KEY if by_key and not layout.columns else layout

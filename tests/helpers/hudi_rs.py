"""Rows of a table as hudi-rs (the PyPI package ``hudi``) reads them: a reader nobody here wrote."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from hudi import HudiReadOptions, HudiTableBuilder


def rows_by_hudi_rs(path: str, columns: Sequence[str]) -> list[tuple[object, ...]]:
    """Sorted rows of a snapshot read, as tuples of the named columns."""
    batches = HudiTableBuilder.from_base_uri(path).build().read(HudiReadOptions())
    if not batches:
        return []
    table = pa.Table.from_batches(batches).select(list(columns))
    return sorted(zip(*[column.to_pylist() for column in table.columns], strict=True))

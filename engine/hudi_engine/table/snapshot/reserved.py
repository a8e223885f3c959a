"""Names that no column of a table may get, since something else is stored or read under them."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_engine.errors import SchemaError
from hudi_engine.format.schema.meta_fields import meta_fields
from hudi_engine.table.snapshot.native import filled_by_spark
from hudi_engine.table.snapshot.sidecar import MASK_COLUMNS

_PREFIX = "__hudi_"
"""Columns of rows on their way into a table begin so."""


def refuse_reserved(names: Iterable[str]) -> None:
    """Refuse columns, in any case, that Hudi, this engine or Spark's Parquet reader takes for its own; raises SchemaError."""
    for name in names:
        if filled_by_spark([name]) is not None:
            raise SchemaError(
                f"column {name!r}: Spark's Parquet reader fills a column of this name with the places of rows; rename it"
            )
        if name.lower() in meta_fields(operation=True):
            raise SchemaError(
                f"column {name!r} is a meta column, which Hudi fills itself, or differs from one by case only; leave it out"
            )
        if name.lower().startswith(_PREFIX) or name.lower() in MASK_COLUMNS:
            raise SchemaError(
                f"column {name!r}: {', '.join(MASK_COLUMNS)} and names that begin with {_PREFIX} are this engine's own; "
                "rename it"
            )

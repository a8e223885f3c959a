"""Settings of a table as its properties file has them."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_engine.format.config.table_config import TableConfig


def version_6(
    keys: str, partitions: str, generator: Mapping[str, str], more: Mapping[str, str]
) -> TableConfig:
    """Give the settings of a copy-on-write table.

    Args:
        keys: Columns of the record key, with commas.
        partitions: Columns of the partitions, with commas.
        generator: The property that names the key generator; empty for none.
        more: Further properties, without ``hoodie.`` and with two underscores for a dot.
    """
    return TableConfig.from_properties(
        {
            "hoodie.table.name": "t",
            "hoodie.table.type": "COPY_ON_WRITE",
            "hoodie.table.version": "6",
            "hoodie.table.recordkey.fields": keys,
            "hoodie.table.partition.fields": partitions,
            **generator,
            **{f"hoodie.{name.replace('__', '.')}": value for name, value in more.items()},
        }
    )

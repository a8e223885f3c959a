"""Tables whose rows are filled column by column and whose columns have defaults other than null.

Hudi takes a value that equals the column's default in the table's Avro schema for "no value given", and a null for one,
where that default is not null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_engine.config.enums import MergeMode
from hudi_engine.config.table_config import TableConfig
from hudi_engine.errors import UnsupportedTableError
from hudi_engine.schema.meta_fields import IS_DELETED

_FILLED = (MergeMode.PARTIAL_UPDATE, MergeMode.OVERWRITE_NON_DEFAULTS)


def refuse_defaults(config: TableConfig, avro_schema: Mapping[str, Any]) -> None:
    """Refuse to write rows that this engine would fill by null where Hudi fills by a default.

    Args:
        config: The table's properties.
        avro_schema: The table's Avro record.

    Raises:
        UnsupportedTableError: It names the columns and the way out.
    """
    if config.merge_mode not in _FILLED:
        return
    # a row that is stored is no delete, so there is no other value it could keep
    found = {
        field["name"]: field["default"]
        for field in avro_schema["fields"]
        if field.get("default") is not None and field["name"] != IS_DELETED
    }
    if found:
        named = ", ".join(f"{name}={value!r}" for name, value in sorted(found.items()))
        raise UnsupportedTableError(
            f"table {config.name!r} fills rows column by column ({config.merge_mode.value}), and its Avro schema has the defaults "
            f"{named}, which Apache Hudi takes for no value given; this engine takes null for that and would keep other "
            "values. Write to it with Apache Hudi, or with a schema whose defaults are null"
        )

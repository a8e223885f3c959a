"""Record key and partition path of the rows of a write, and which columns tell them of rows to delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import ConfigError, SchemaError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.keygen.generator import build_key_generator, refuse_keyless
from hudi_engine.format.keygen.partition_path import check_new_partition
from hudi_engine.format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.table.lookup.kinds import IndexKind
from hudi_engine.table.state import TableState
from hudi_engine.table.write.place.partitions import check_partition_count
from hudi_engine.table.write.request import WriteRequest


def with_keys(table: pa.Table, request: WriteRequest, state: TableState, index: IndexKind) -> pa.Table:
    """Add record key and partition path, refusing rows without a key and partition values that would escape.

    Args:
        table: The rows in the table's types.
        state: The table with the settings of the write.
        index: How keys are looked up; of keys to delete that are looked for everywhere the partition does not matter.
    """
    config = state.config
    if request.changes is not None and config.record_key_fields:
        refuse_keyless(table.column(RECORD_KEY).null_count, config)
    if not request.prepped:
        generator = build_key_generator(
            config, options=request.options, complex_single_prefix=state.keys_carry_field_name()
        )
        keys = generator.record_keys(table)
        unplaced = (
            request.operation.delete_only
            and index.is_global
            and not has_partition_columns(table.column_names, config)
        )
        partitions = (
            pa.array([""] * table.num_rows, pa.string()) if unplaced else generator.partition_paths(table)
        )
        if keys is not None:
            table = table.append_column(RECORD_KEY, keys)
        table = table.append_column(PARTITION_PATH, partitions)
    distinct = pc.unique(table.column(PARTITION_PATH))
    check_partition_count(distinct, request.options)
    for partition in distinct.to_pylist():
        check_new_partition(partition)
    return table


def has_partition_columns(names: Sequence[str], config: TableConfig) -> bool:
    """Tell whether columns have all that partition paths are made of."""
    given = {name.lower() for name in names}
    return all(field.name.partition(".")[0].lower() in given for field in config.partition_fields)


def keys_to_look_up(
    config: TableConfig, given: Sequence[str], index: IndexKind
) -> tuple[list[str], IndexKind]:
    """Return the columns that tell which rows to delete; without those of the partition keys are looked for everywhere.

    Args:
        given: Columns that came.

    Raises:
        ConfigError: The writer generates the keys of the table.
    """
    if not config.record_key_fields:
        raise ConfigError(
            f"table {config.name!r} has generated record keys, so rows cannot be deleted by key; "
            "use delete_where(condition) instead"
        )
    keys = [name.partition(".")[0] for name in config.record_key_fields]
    parts = [field.name.partition(".")[0] for field in config.partition_fields]
    known = has_partition_columns(given, config)
    if not known:
        index = replace(index, is_global=True, moves_partition=False, buckets=None)
    return list(dict.fromkeys([*keys, *(parts if known else [])])), index


def text_may_differ(given: pa.Field, wanted: pa.DataType) -> bool:
    """Tell whether a key may have another text in the type of the table's column; raises SchemaError where it cannot be cast.

    Args:
        given: Column of keys to delete.
        wanted: Type of the table's column.
    """
    kinds = (given.type, wanted)
    if given.type.equals(wanted) or not any(
        pa.types.is_decimal(each) or pa.types.is_floating(each) for each in kinds
    ):
        return False
    is_exact = pa.types.is_decimal(given.type) or pa.types.is_integer(given.type)
    if not (is_exact and pa.types.is_decimal(wanted)):
        raise SchemaError(
            f"the keys to delete have column {given.name!r} as {given.type}, and the table has it as {wanted}, which may "
            f"read otherwise as a key; cast it to {wanted}"
        )
    return True

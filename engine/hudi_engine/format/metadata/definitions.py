"""``.hoodie/.index_defs/index.json``: what the indexes of a table's metadata table are over, and their versions.

Source: Hudi index definitions (``HoodieIndexMetadata``). ``files``, ``partition_stats`` and ``bloom_filters`` have no entry.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.metadata.expressions import Expression
from hudi_engine.format.metadata.records import MetadataPartition
from hudi_engine.format.storage.base import Storage

DEFINITIONS_PATH = ".hoodie/.index_defs/index.json"
DEFINITIONS_PROPERTY = "hoodie.table.index.defs.path"
_V2, _IDENTITY = "V2", "identity"


@dataclass(frozen=True)
class IndexDefinitions:
    """The definitions of one table.

    Args:
        entries: Each definition by the partition of the metadata table, with Hudi's keys.
        table_version: ``hoodie.table.version``.
    """

    entries: Mapping[str, Mapping[str, Any]]
    table_version: int

    @classmethod
    def load(cls, storage: Storage, config: TableConfig) -> IndexDefinitions:
        """Read the definitions of a table; none where it has no such file."""
        try:
            data = storage.read(DEFINITIONS_PATH)
        except FileNotFoundError:
            return cls({}, config.version)
        try:
            entries = json.loads(data)["indexDefinitions"]
            return cls({name: dict(entry) for name, entry in entries.items()}, config.version)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CorruptTableError(
                f"{DEFINITIONS_PATH} of {storage.base!r} cannot be read: {error!r}. Drop the metadata table "
                "(CALL delete_metadata_table) and build it again"
            ) from error

    def is_v2(self, partition: str) -> bool:
        """Return whether an index has version V2; partition statistics have that of the column statistics."""
        if partition == MetadataPartition.PARTITION_STATS.value:
            partition = MetadataPartition.COLUMN_STATS.value
        default = _V2 if self.table_version >= 9 else "V1"
        return bool(self.entries.get(partition, {}).get("version", default) == _V2)

    def source_fields(self, partition: str) -> tuple[str, ...] | None:
        """Return the columns that an index is over; None where that is not defined."""
        fields = self.entries.get(partition, {}).get("sourceFields")
        return tuple(fields) if isinstance(fields, list) and fields else None

    @property
    def secondary_columns(self) -> dict[str, str]:
        """The column of each secondary index, by its partition; without those that are not over the values of one column."""
        prefix = MetadataPartition.SECONDARY_INDEX.value
        of_values = [
            name
            for name, entry in self.entries.items()
            if name.startswith(prefix) and entry.get("indexFunction") in (None, _IDENTITY)
        ]
        fields = {name: self.source_fields(name) or () for name in of_values}
        return {name: columns[0] for name, columns in fields.items() if len(columns) == 1}

    @property
    def expressions(self) -> dict[str, Expression]:
        """The expression of each expression index that can be kept, by its partition."""
        prefix = MetadataPartition.EXPRESSION_INDEX.value
        found = {
            name: Expression.of(entry) for name, entry in self.entries.items() if name.startswith(prefix)
        }
        return {name: each for name, each in found.items() if each is not None}

    @property
    def partitioned_record_index(self) -> bool:
        """Whether the record index has file groups of its own for each partition of the table."""
        options = self.entries.get(MetadataPartition.RECORD_INDEX.value, {}).get("indexOptions") or {}
        return str(options.get("isPartitioned", "false")).lower() == "true"

    def with_index(
        self,
        partition: str,
        fields: Sequence[str] = (),
        expression: Expression | None = None,
        *,
        is_partitioned: bool = False,
    ) -> IndexDefinitions:
        """Return the definitions with one more, or one with other columns; it keeps its version.

        Args:
            expression: That of an expression index.
            is_partitioned: Whether a record index has file groups of its own for each partition of the table.
        """
        kind = MetadataPartition.of(partition)
        index_type, function, options = partition, partition, dict[str, str]()
        if kind is MetadataPartition.SECONDARY_INDEX:
            index_type, function = kind.value.rstrip("_"), _IDENTITY
        elif expression is not None:
            index_type, function = MetadataPartition.COLUMN_STATS.value, expression.function
            options = {"expr": expression.function, **expression.options}
        of_records = kind is MetadataPartition.RECORD_INDEX
        entry = {
            "indexName": partition,
            "indexType": index_type,
            "indexFunction": "" if of_records else function,
            "sourceFields": list(fields),
            "indexOptions": {"isPartitioned": str(is_partitioned).lower()} if of_records else options,
        }
        if self.table_version >= 9:
            entry["version"] = "V1" if of_records or not self.is_v2(partition) else _V2
        return IndexDefinitions({**self.entries, partition: entry}, self.table_version)

    def of(self, names: Collection[str]) -> IndexDefinitions:
        """Return the definitions of some."""
        return self.without(self.entries.keys() - set(names))

    def without(self, names: Collection[str]) -> IndexDefinitions:
        """Return the definitions without some."""
        kept = {name: entry for name, entry in self.entries.items() if name not in names}
        return IndexDefinitions(kept, self.table_version)

    def save(self, storage: Storage) -> None:
        """Write the file."""
        text = json.dumps({"indexDefinitions": self.entries}, indent=2, separators=(",", " : "))
        storage.replace(DEFINITIONS_PATH, text.encode())

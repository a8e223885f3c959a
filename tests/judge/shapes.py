"""Shapes of tables that the judge tests write: table types, key generators, partitionings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tests.judge.oracle import Oracle

COLUMNS = "id long, name string, price double, ts long, day string"
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.float64()),
        ("ts", pa.int64()),
        ("day", pa.string()),
    ]
)
_KEYGEN = "org.apache.hudi.keygen."


@dataclass(frozen=True)
class Shape:
    """One kind of table, in the words of our engine and of Apache Hudi.

    Args:
        name: Readable name, the id of the test.
        table_type: ``cow`` or ``mor``.
        key: Key columns.
        partition: Partition column or None.
        ordering: Ordering column or None.
        options: Options of our ``create``.
    """

    name: str
    table_type: str
    key: tuple[str, ...] = ("id",)
    partition: str | None = "day"
    ordering: str | None = "ts"
    options: dict[str, str] = field(default_factory=dict)

    def oracle(self) -> Oracle:
        """Give an empty oracle of the shape."""
        return Oracle(self.key, self.partition, self.ordering)

    def create(self, engine: Any, spark: Any, path: str) -> Any:
        """Make the table with our engine."""
        return engine.create(
            spark,
            path,
            name="judged",
            record_key=list(self.key),
            precombine_field=self.ordering,
            partition_by=None if self.partition is None else [self.partition],
            table_type=self.table_type,
            options={"hoodie.datasource.write.hive_style_partitioning": "true", **self.options},
        )

    def hudi_options(self) -> dict[str, str]:
        """Give the options with which Apache Hudi writes to the table, as a user would repeat them."""
        prefix = "hoodie.datasource.write."
        options = {
            "hoodie.table.name": "judged",
            prefix + "recordkey.field": ",".join(self.key),
            prefix + "table.type": "MERGE_ON_READ" if self.table_type == "mor" else "COPY_ON_WRITE",
            # Packing hides a key that the index missed.
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.index.type": "BLOOM",
            "hoodie.compact.inline": "false",
            "hoodie.upsert.shuffle.parallelism": "2",
            "hoodie.delete.shuffle.parallelism": "2",
        }
        if self.ordering is not None:
            payload = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
            options |= {prefix + "precombine.field": self.ordering, prefix + "payload.class": payload}
        if self.partition is None:
            options[prefix + "keygenerator.class"] = _KEYGEN + "NonpartitionedKeyGenerator"
        else:
            options |= {
                prefix + "partitionpath.field": self.partition,
                prefix + "hive_style_partitioning": "true",
                prefix + "keygenerator.class": _KEYGEN
                + ("ComplexKeyGenerator" if len(self.key) > 1 else "SimpleKeyGenerator"),
            }
        return options


SHAPES = (
    Shape("cow, partitioned, event time", "cow"),
    Shape("cow, no partitions, event time", "cow", partition=None),
    Shape("cow, composite key", "cow", key=("id", "name")),
    Shape("mor, partitioned, event time", "mor"),
    Shape("mor, no partitions, event time", "mor", partition=None),
    Shape("mor, commit time", "mor", ordering=None),
    Shape("mor, parquet logs", "mor", options={"hoodie.logfile.data.block.format": "parquet"}),
    Shape("mor, avro logs", "mor", options={"hoodie.logfile.data.block.format": "avro"}),
    Shape("mor, changelog", "mor", options={"hoodie.allow.operation.metadata.field": "true"}),
)


def row(
    identifier: int, ts: int, name: str = "", price: float | None = None, day: str | None = None
) -> dict[str, Any]:
    """Give one row; its day follows from its id, so that a key stays in its partition."""
    days = ("mon", "tue", "wed")
    return {
        "id": identifier,
        "name": name or f"item {identifier}",
        "price": float(ts) if price is None else price,
        "ts": ts,
        "day": day or days[identifier % 3],
    }


def arrow(rows: list[dict[str, Any]]) -> pa.Table:
    """Give rows as Apache Hudi gets them."""
    return pa.Table.from_pylist(rows, schema=SCHEMA)

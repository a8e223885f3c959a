"""A table of any version that this engine and Apache Hudi write in turn, with the rows that it should have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from hudi_engine import HudiTable

from tests.judge.apache_hudi import ApacheHudi
from tests.judge.arrow_rows import rows_of_spark
from tests.judge.hudi_rs import hudi_rs_rows
from tests.judge.rows import difference, without_meta

COLUMNS = "id string, ts long, dt string, val string"
NAMES = ("id", "ts", "dt", "val")
TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
Row = dict[str, Any]


@dataclass
class Table:
    """A table in a folder and the rows it should have.

    Args:
        kind: ``cow`` or ``mor``.
        hudi: Apache Hudi that writes and judges.
        rows: The rows by key.
        options: Options of both writers, such as the index.
        partitioned: Whether ``dt`` makes partitions.
        ordered: Whether ``ts`` orders the versions of a row.
        metadata: Whether Apache Hudi keeps its metadata table.
    """

    spark: Any
    path: Path
    kind: str
    hudi: ApacheHudi
    rows: dict[str, Row] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    partitioned: bool = True
    ordered: bool = True
    metadata: bool = False

    def make(self, version: int) -> None:
        """Make it in a table version."""
        HudiTable.create(
            self.spark, str(self.path), name="t", record_key="id", precombine_field="ts" if self.ordered else None,
            partition_by="dt" if self.partitioned else None, table_type=self.kind,
            options={"hoodie.write.table.version": str(version), **self.options},
        )  # fmt: skip

    @property
    def opened(self) -> HudiTable:
        """The table, opened anew."""
        return HudiTable.open(self.spark, str(self.path), options=self.options)

    def values(self, keys: Iterable[int], version: int) -> list[Row]:
        """Return rows of some keys."""
        return [
            {"id": f"k{key}", "ts": version, "dt": f"p{key % 3}", "val": f"v{version} of {key}"}
            for key in keys
        ]

    def frame(self, keys: Iterable[int], version: int) -> Any:
        """Return rows of some keys as a DataFrame."""
        return self.spark.createDataFrame(
            [tuple(row.values()) for row in self.values(keys, version)], COLUMNS
        )

    def upsert(self, keys: Any, version: int, **options: str) -> str:
        """Upsert keys with a value of their own; return the instant."""
        done = self.opened.upsert(self.frame(keys, version), options=options)
        self.note(keys, version)
        return str(done.instant)

    def note(self, keys: Any, version: int) -> None:
        """Note what an upsert makes of the rows."""
        for row in self.values(keys, version):
            stored = self.rows.get(row["id"])
            if stored is None or not self.ordered or stored["ts"] <= version:
                self.rows[row["id"]] = row

    def forget(self, keys: Iterable[int]) -> None:
        """Note that keys were deleted."""
        for key in keys:
            self.rows.pop(f"k{key}", None)

    def upsert_by_hudi(self, keys: Any, version: int) -> None:
        """Upsert keys by Apache Hudi, in the version that the table has."""
        self.write_by_hudi(keys, version)
        self.note(keys, version)

    def make_by_hudi(self, keys: Any, version: int, table_version: int) -> None:
        """Make the table by Apache Hudi, with its metadata table and all that is its default."""
        more = {"hoodie.write.table.version": str(table_version), "hoodie.metadata.enable": "true"}
        self.write_by_hudi(keys, version, mode="overwrite", **more)
        self.note(keys, version)

    def compact_by_hudi(self, table_version: int) -> None:
        """Compact the table by Apache Hudi."""
        # Hudi's checks of a bucket index ask for the key, which the procedure does not take from the table
        index = "".join(f",{key}={value}" for key, value in self.options.items() if "index" in key)
        index += ",hoodie.datasource.write.recordkey.field=id"
        self.hudi.call(
            self.path, "run_compaction", keep_v6=False, op="scheduleAndExecute",
            options=f"hoodie.write.table.version={table_version},hoodie.write.auto.upgrade=false,"
            f"hoodie.metadata.enable={str(self.metadata).lower()},hoodie.compact.inline.max.delta.commits=1{index}",
        )  # fmt: skip

    def write_by_hudi(
        self, keys: Any, version: int, operation: str = "upsert", mode: str = "append", **more: str
    ) -> None:
        """Write keys by Apache Hudi, in the version that the table has; nothing is noted."""
        place = {"hoodie.datasource.write.partitionpath.field": "dt"}
        if not self.partitioned:
            place = {
                "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
            }
        options = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.table.type": TYPES[self.kind],
            "hoodie.write.auto.upgrade": "false",
            "hoodie.metadata.enable": str(self.metadata).lower(),
            **place,
            **({"hoodie.datasource.write.precombine.field": "ts"} if self.ordered else {}),
            **self.options,
            **more,
        }
        if mode == "append":
            options["hoodie.write.table.version"] = str(self.opened.config.version)
        values = [[row[name] for row in self.values(keys, version)] for name in NAMES]
        kinds = [pa.string(), pa.int64(), pa.string(), pa.string()]
        rows = pa.table([pa.array(each, kind) for each, kind in zip(values, kinds, strict=True)], names=NAMES)
        self.hudi.write(self.path, rows, options, operation=operation, keep_v6=False, mode=mode)

    def check(self, after: str) -> None:
        """All readers see the rows, and nothing is wrong with the table."""
        wanted = list(self.rows.values())
        readers = {
            "this engine": lambda: rows_of_spark(self.opened.snapshot()),
            "hudi-rs": lambda: hudi_rs_rows(self.path),
            "Apache Hudi": lambda: self.hudi.read(self.path),
        }
        for name, read in readers.items():
            assert difference(without_meta(read()), wanted) == "", f"{after}, read by {name}"
        assert self.opened.validate(keys=True) == [], after

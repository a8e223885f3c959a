"""Merge-on-read tables take updates of some columns and late rows in any order, with the rows of a copy-on-write table."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import hudi_engine
import pyarrow as pa
import pytest

from tests.helpers.forms import in_turn

KINDS: dict[str, list[str] | None] = {"whole": None, "v and o": ["v", "o"], "w and o": ["w", "o"], "v": ["v"]}
BEFORE, STORED, AFTER = 4, 5, 7
HISTORIES = [
    (kinds, times)
    for kinds in product(KINDS, repeat=3)
    for times in (
        (BEFORE, AFTER, BEFORE),
        (AFTER, BEFORE, AFTER),
        (BEFORE, BEFORE, AFTER),
        (AFTER, STORED, BEFORE),
    )
]
"""Three writes after the first one: of which columns, and when they say that they happened; a partition for each three kinds."""


def table_of(path: Path, kind: str, options: dict[str, str]) -> hudi_engine.Table:
    table = hudi_engine.create_table(
        str(path), name="t", record_key=["id"], precombine_field="o", partition_by=["p"], table_type=kind, options=options
    )  # fmt: skip
    rows = [row(number, STORED, "stored") for number in range(len(HISTORIES))]
    table.upsert(pa.Table.from_pylist(rows))
    return table


def row(number: int, time: int, value: str) -> dict[str, Any]:
    return {
        "id": number,
        "p": "-".join(HISTORIES[number][0]),
        "o": time,
        "v": f"v {value}",
        "w": f"w {value}",
    }


def write(table: hudi_engine.Table, step: int) -> None:
    """Do one write of all histories: those of the same columns together."""
    for kind, columns in KINDS.items():
        rows = [
            row(number, times[step], f"{step} {times[step]}")
            for number, (kinds, times) in enumerate(HISTORIES)
            if kinds[step] == kind
        ]
        batch = pa.Table.from_pylist(rows)
        if columns is not None:
            batch = batch.select(["id", "p", *dict.fromkeys(["o", *columns])])
        table.upsert(batch, update_columns=columns)


def rows_of(table: hudi_engine.Table) -> list[dict[str, Any]]:
    found = table.read(columns=["id", "o", "v", "w"]).to_arrow().to_pylist()
    return sorted(found, key=lambda each: each["id"])


@pytest.mark.parametrize(("index", "version"), in_turn(("SIMPLE", "BUCKET"), ("8", "9")))
def test_updates_of_some_columns_and_late_rows_in_any_order(tmp_path: Path, index: str, version: str) -> None:
    options = {
        "hoodie.write.table.version": version,
        "hoodie.index.type": index,
        "hoodie.metadata.enable": "false",
    }
    if index == "BUCKET":
        options["hoodie.bucket.index.num.buckets"] = "1"
    cow, mor = (table_of(tmp_path / kind, kind, options) for kind in ("cow", "mor"))
    for step in range(3):
        write(cow, step)
        write(mor, step)
        assert rows_of(mor) == rows_of(cow), f"after write {step + 1}"
    mor.compact()
    assert rows_of(mor) == rows_of(cow), "after the compaction"

"""What our engine says has changed, in tables of Apache Hudi and in its own, is what Apache Hudi's change queries say."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hudi_engine import HudiTable
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.changes.plan import plan_changes, steps_since
from hudi_engine.table.state import TableState

from tests.judge.arrow_rows import rows_of_arrow
from tests.judge.readers import Judges
from tests.judge.shapes import COLUMNS, SHAPES, arrow, row

NAMES = ("id", "ts", "price")
OPERATIONS = {"insert": "i", "update_after": "u", "delete": "d"}
TABLES = [
    ("0.15.0", "COPY_ON_WRITE", "OP_KEY_ONLY", True),
    ("0.15.0", "MERGE_ON_READ", "DATA_BEFORE_AFTER", True),
    ("1.2.0", "COPY_ON_WRITE", "DATA_BEFORE_AFTER", False),
]
FURTHER_TABLES = [
    pytest.param("0.15.0", "COPY_ON_WRITE", "DATA_BEFORE_AFTER", True, marks=pytest.mark.long),
]
OURS = [
    ("0.15.0", "cow", "OP_KEY_ONLY"),
    ("0.15.0", "mor", "DATA_BEFORE_AFTER"),
    ("1.2.0", "cow", "DATA_BEFORE"),
]
FURTHER_OURS = [
    pytest.param(*each, marks=pytest.mark.long)
    for each in (
        ("0.15.0", "cow", "DATA_BEFORE_AFTER"),
        ("0.15.0", "cow", "DATA_BEFORE"),
        ("1.2.0", "cow", "DATA_BEFORE_AFTER"),
    )
]


def told(state: TableState, start: str, end: str, mode: str) -> list[dict[str, Any]]:
    schema = state.data_schema(end)
    assert schema is not None
    steps, cleaned = steps_since(state, start, end, mode=mode)
    read = state.read_context(schema, resolve_options({}))
    return rows_of_arrow(plan_changes(state, read, steps, cleaned, mode).rows())


def image(values: dict[str, Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values[name] for name in NAMES)


def change_data(rows: list[dict[str, Any]]) -> Counter[Any]:
    """Hudi's operation with the row before and after, from our rows of all changes."""
    before = {
        (row["_commit_time"], row["id"]): image(row) for row in rows if row["_change_type"] == "update_before"
    }
    found: Counter[Any] = Counter()
    for each in rows:
        kind, place = each["_change_type"], (each["_commit_time"], each["id"])
        if kind != "update_before":
            old = image(each) if kind == "delete" else before.get(place)
            found[OPERATIONS[kind], old, None if kind == "delete" else image(each)] += 1
    return found


def images(rows: list[dict[str, Any]]) -> Counter[Any]:
    """Operation with the row before and after, from the rows of a CDC query."""
    return Counter(
        (
            each["op"],
            *(image(json.loads(each[name]) if each[name] else None) for name in ("before", "after")),
        )
        for each in rows
    )


@pytest.mark.parametrize(("version", "table_type", "logging", "keep_v6"), [*TABLES, *FURTHER_TABLES])
def test_apache_hudis_change_queries_say_the_same(
    version: str, table_type: str, logging: str, keep_v6: bool, tmp_path: Path, apache_hudi: Judges
) -> None:
    hudi, path = apache_hudi(version), tmp_path / "t"
    options = SHAPES[0].hudi_options() | {
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": logging,
    }
    hudi.write(
        path, arrow([row(number, 10) for number in range(6)]), options, mode="overwrite", keep_v6=keep_v6
    )
    hudi.upsert(path, arrow([row(0, 20, price=7.0), row(6, 20)]), options, keep_v6=keep_v6)
    hudi.delete(path, arrow([row(1, 30), row(6, 30)]), options, keep_v6=keep_v6)
    hudi.upsert(path, arrow([row(0, 40, price=8.0), row(2, 40, price=9.0)]), options, keep_v6=keep_v6)

    state = TableState.load(open_storage(str(path)))
    writes = state.timeline.completed_writes
    requested = [write.requested_time for write in writes]
    # table versions 8 and 9 are queried by the time at which commits completed
    asked = [write.completion_time or write.requested_time for write in writes]
    for start, end in ((0, 3), (0, 1), (1, 2), (2, 3)):
        window = {"begin": asked[start], "end": asked[end]}
        theirs = images(hudi.read(path, "cdc", **window))
        assert change_data(told(state, requested[start], requested[end], "all")) == theirs, (start, end)

        newest = [
            row
            for row in told(state, requested[start], requested[end], "net")
            if row["_change_type"] != "delete"
        ]
        incremental = hudi.read(path, "incremental", **window)
        assert Counter(map(image, newest)) == Counter(map(image, incremental)), (start, end)


@pytest.mark.parametrize(("version", "table_type", "logging"), [*OURS, *FURTHER_OURS])
def test_apache_hudi_reads_the_change_data_of_our_tables(
    version: str, table_type: str, logging: str, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    hudi = apache_hudi(version)
    options = {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": logging}
    shape = replace(SHAPES[0], table_type=table_type, options=options)
    table = shape.create(HudiTable, spark, str(tmp_path / "t"))

    def frame(*rows: dict[str, Any]) -> Any:
        return spark.createDataFrame(list(rows), COLUMNS)

    writes = [
        table.upsert(frame(*(row(number, 10) for number in range(9)), row(20, 10, day="thu"))),
        # an update, a late row that changes nothing, new rows that are packed into a file that is there
        table.upsert(frame(row(0, 20, price=7.0), row(1, 5, price=8.0), row(9, 20), row(12, 20))),
        table.delete(frame(row(1, 30), row(9, 30))),
        # one row is replaced, as Hudi 0.15 tells the last of several again and again
        table.insert_overwrite(frame(row(20, 40, day="thu"), row(21, 40, day="thu"))),
        table.delete(frame(row(20, 50, day="thu"), row(21, 50, day="thu"))),
    ]
    instants = [str(write.instant) for write in writes]
    for start, end in ((0, 4), (0, 1), (1, 2), (2, 3), (3, 4)):
        theirs = images(hudi.read(table.path, "cdc", begin=instants[start], end=instants[end]))
        ours = [each.asDict() for each in table.cdc(instants[start], instants[end]).collect()]
        assert images(ours) == theirs, (start, end)
    assert sum(theirs.values()) == 2

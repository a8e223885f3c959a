"""Clustering within a window, run or only planned: what Apache Hudi's change queries say of its own tables."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.state import TableState

from tests.judge.readers import Judges
from tests.judge.shapes import SHAPES, arrow, row
from tests.judge.test_changes import change_data, image, images, told

LOGGING = {
    "hoodie.table.cdc.enabled": "true",
    "hoodie.table.cdc.supplemental.logging.mode": "DATA_BEFORE_AFTER",
}


def assert_told_alike(hudi: Any, path: Path, first: int, last: int) -> None:
    """Check the window between two writes of the timeline."""
    state = TableState.load(open_storage(str(path)))
    start, end = (state.timeline.completed_writes[number] for number in (first, last))
    window = {
        "begin": start.completion_time or start.requested_time,
        "end": end.completion_time or end.requested_time,
    }
    ours = told(state, start.requested_time, end.requested_time, "all")
    assert change_data(ours) == images(hudi.read(path, "cdc", **window)), (first, last)
    net = told(state, start.requested_time, end.requested_time, "net")
    newest = Counter(image(each) for each in net if each["_change_type"] != "delete")
    assert newest == Counter(map(image, hudi.read(path, "incremental", **window))), (first, last)


@pytest.mark.parametrize(
    ("version", "keep_v6"),
    [
        pytest.param("0.15.0", True, marks=pytest.mark.long),
        ("1.2.0", False),
    ],
)
def test_clusterings_of_apache_hudi_change_no_row(
    version: str, keep_v6: bool, tmp_path: Path, apache_hudi: Judges
) -> None:
    hudi, path = apache_hudi(version), tmp_path / "t"
    options = SHAPES[0].hudi_options() | LOGGING | {"hoodie.datasource.write.table.type": "COPY_ON_WRITE"}
    first = arrow([row(number, 10) for number in range(6)])
    hudi.write(path, first, options, mode="overwrite", keep_v6=keep_v6)
    hudi.upsert(path, arrow([row(0, 20, price=7.0), row(6, 20)]), options, keep_v6=keep_v6)
    hudi.call(path, "run_clustering", keep_v6=keep_v6, order="price")
    hudi.upsert(path, arrow([row(0, 30, price=8.0), row(2, 30, price=9.0)]), options, keep_v6=keep_v6)
    hudi.delete(path, arrow([row(1, 40)]), options, keep_v6=keep_v6)
    hudi.call(path, "run_clustering", keep_v6=keep_v6, op="schedule", order="price")
    hudi.upsert(path, arrow([row(20, 50, day="thu")]), options, keep_v6=keep_v6)
    writes = TableState.load(open_storage(str(path))).timeline.completed_writes
    assert any(write.action == "replacecommit" for write in writes)
    # the whole, the clustering alone, and the write after it
    for first, last in ((0, len(writes) - 1), (1, 2), (2, 3)):
        assert_told_alike(hudi, path, first, last)

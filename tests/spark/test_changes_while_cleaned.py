"""A clean that has begun to take files, and has not ended, makes no change untold: there is a gap, or all of them are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_engine import HudiTable
from hudi_engine.errors import HistoryGapError, TimelineError
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.spark.sql.earlier_states import rows_as_of
from hudi_engine.table.services import clean
from hudi_engine.table.state import TableState

from tests.faults.scenarios import copy_of, killed
from tests.helpers.fault import FaultInjectingStorage
from tests.helpers.forms import in_turn
from tests.helpers.histories import frame, make
from tests.helpers.told_changes import plan
from tests.unit.services.tables import options

MANUAL = {"hoodie.clean.automatic": "false"}


def overwritten(spark, table: HudiTable) -> None:
    """Replace all rows, without the third."""
    table.insert_overwrite_table(frame(spark, (1, 2, "a", "ONE"), (2, 1, "b", "two")))


def clustered(spark, table: HudiTable) -> None:
    """Write all rows anew, then delete the third."""
    table.cluster(["name"])
    table.delete(frame(spark, (3, 3, "a", "three")))


def compacted(spark, table: HudiTable) -> None:
    """Delete the third row, and write base files of what logs say."""
    table.delete(frame(spark, (3, 3, "a", "three")))
    if table.config.table_type.name == "MERGE_ON_READ":
        table.compact()
    table.upsert(frame(spark, (2, 1, "b", "two")))


def cleaned(storage: Storage) -> None:
    """Keep the files of the newest commit."""
    clean(storage, options(), retain_commits=1)


def told(state: TableState, start: str, mode: str) -> list[tuple] | None:
    """Return the changes since an instant, None for a gap."""
    try:
        rows = plan(state, start, None, mode).rows()
    except HistoryGapError:
        return None
    return sorted(
        tuple(row.values())[:2] + (row["_change_type"],)
        for row in rows.select(["id", "name", "_change_type"]).to_pylist()
    )


@pytest.mark.parametrize(
    ("table_type", "change"), in_turn(("cow", "mor"), (overwritten, clustered, compacted))
)
def test_changes_are_all_told_or_a_gap_is(spark, tmp_path: Path, table_type: str, change) -> None:
    table = make(spark, tmp_path / "t", table_type=table_type, **MANUAL)
    first = table.upsert(frame(spark, (1, 1, "a", "one"), (2, 1, "b", "two"), (3, 1, "a", "three"))).instant
    for _ in range(3):
        change(spark, table)
    want = {mode: told(TableState.load(table.storage), first, mode) for mode in ("net", "all")}
    assert all(want.values())
    counting = FaultInjectingStorage(copy_of(LocalStorage(table.path), tmp_path))
    cleaned(counting)
    seen: set[str] = set()
    for call in range(1, len(counting.calls) + 1):
        storage = copy_of(LocalStorage(table.path), tmp_path)
        early = TableState.load(storage)
        killed(storage, cleaned, call, "after")
        for state in (early, TableState.load(storage)):
            for mode, rows in want.items():
                found = told(state, first, mode)
                assert found in (None, rows), f"killed after call {call}: {counting.calls[call - 1]}"
                seen.add("gap" if found is None else "told")
    assert seen == {"gap", "told"}


def test_an_earlier_state_whose_files_went_before_they_were_listed_is_refused(spark, tmp_path: Path) -> None:
    table = make(spark, tmp_path / "t", **MANUAL)
    first = table.upsert(frame(spark, (1, 1, "a", "one"))).instant
    state = TableState.load(table.storage)
    table.upsert(frame(spark, (1, 2, "a", "uno")))
    table.upsert(frame(spark, (1, 3, "a", "un")))
    assert [row["name"] for row in rows_as_of(spark, state, first).collect()] == ["one"]
    cleaned(table.storage)
    with pytest.raises(TimelineError, match="was cleaned, .* before its files were listed.*Read again"):
        rows_as_of(spark, state, first)

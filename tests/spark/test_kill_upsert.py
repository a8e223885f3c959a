"""An upsert, and a delete and insert in one instant, killed at every call that changes the storage: old rows or new ones are read, and the next write works."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hudi_engine import HudiTable
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.table.txn.owner import Owner

from tests.helpers.fault import FaultInjectingStorage, FaultPlan, SimulatedCrash, raise_crash
from tests.helpers.hudi_rs import rows_by_hudi_rs
from tests.helpers.keyed import keyed_table
from tests.helpers.read_table import read_table

pytestmark = pytest.mark.slow

COLUMNS = "id int, ts bigint, dt string, name string"
NAMES = ["id", "ts", "dt", "name"]
OLD = [(1, 1, "a", "one"), (2, 1, "a", "two"), (3, 1, "b", "three")]
NEW = [(1, 2, "a", "ONE"), (2, 1, "a", "two"), (3, 1, "b", "three"), (4, 2, "c", "four")]
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}


def stored_rows(path):
    table = read_table(open_storage(path)).select(NAMES)
    return sorted(zip(*[column.to_pylist() for column in table.columns], strict=True))


def fresh_table(spark, path, table_type):
    table = keyed_table(
        spark,
        path,
        table_type,
        options=HIVE,
    )
    table.upsert(spark.createDataFrame(OLD, COLUMNS))
    return table


def change(spark):
    return spark.createDataFrame([(1, 2, "a", "ONE"), (4, 2, "c", "four")], COLUMNS).coalesce(1)


def upsert(table, batch):
    table.upsert(batch)


def replace_keys(table, batch):
    table.replace(batch, keys="id")


# Each is killed at every call or at every n-th: the tests of faults kill the same steps at every call without Spark.
SHORT = [("mor", upsert, "before", 6), ("cow", upsert, "torn", 6), ("cow", replace_keys, "before", 8)]
LONG = [
    (table_type, *each)
    for table_type in ("cow", "mor")
    for each in (
        (upsert, "before", 1),
        (upsert, "after", 1),
        (upsert, "torn", 3),
        (replace_keys, "before", 1),
    )
]


@pytest.mark.parametrize(
    ("table_type", "write", "when", "step"),
    [*SHORT, *(pytest.param(*each, marks=pytest.mark.long) for each in LONG)],
)
def test_killed_anywhere_the_table_reads_right_and_goes_on(spark, tmp_path, table_type, write, when, step):
    batch = change(spark).cache()
    probe = fresh_table(spark, str(tmp_path / "probe"), table_type)
    probe.storage = FaultInjectingStorage(probe.storage)
    write(probe, batch)
    calls = len(probe.storage.calls)
    assert calls >= 8
    for call in range(1, calls + 1, step):
        path = str(tmp_path / f"{when}{call}")
        table = fresh_table(spark, path, table_type)
        table.storage = FaultInjectingStorage(table.storage, FaultPlan(call, when, crash=raise_crash))
        try:
            write(table, batch)
        except SimulatedCrash:
            pass
        assert stored_rows(path) in (OLD, NEW), f"killed {when} call {call}: {probe.storage.calls[call - 1]}"
        assert rows_by_hudi_rs(path, NAMES) in (OLD, NEW)
        _forget_the_dead(path)
        write(HudiTable.open(spark, path), batch)
        assert stored_rows(path) == NEW
        assert all(each.is_completed for each in HudiTable.open(spark, path).timeline())


def _forget_the_dead(path):
    """The simulated victim lives on in this process, so its heartbeats would prove it alive: they say it gave up."""
    storage = open_storage(path)
    for beat in storage.list(".hoodie/.heartbeat"):
        owner = Owner.parse(storage.read(beat.path))
        if owner is not None:
            storage.replace(beat.path, replace(owner, given_up=True).to_json())
    storage.delete(".hoodie/lock")

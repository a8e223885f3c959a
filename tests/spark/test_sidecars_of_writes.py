"""Sidecars that a write makes of those before equal the ones that merging all logs gives, and are the ones published."""

from __future__ import annotations

import random

import pytest
from hudi_engine import HudiTable
from hudi_engine.format.merge.slice_reader import resolve_delta
from hudi_engine.format.merge.table_reader import read_context
from hudi_engine.table.snapshot.manifest import newest_manifest, publish
from hudi_engine.table.snapshot.sidecar import read_sidecar
from hudi_engine.table.state import TableState
from hudi_engine.table.write.place import sidecars
from hudi_engine.table.write.place.sidecars import made_sidecars

QUIET = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
EXECUTORS = {**QUIET, "hoodie.engine.small.batch.rows": "0"}
COLUMNS = "id long, ts long, v string, _hoodie_is_deleted boolean"


def create(spark, tmp_path, **definition):
    return HudiTable.create(
        spark, str(tmp_path / "t"), name="t", record_key=["id"], table_type="mor", **definition
    )


def listed_sidecars(table):
    """Sidecars of the newest manifest: path by file id."""
    entries = [entry for entry in newest_manifest(table.storage).entries if entry.is_delta]
    base = table.storage.uri() + "/"
    return {entry.origin.file_id: entry.uri.removeprefix(base) for entry in entries}


def content(delta):
    return delta.masked_positions.to_pylist(), sorted(map(str, delta.live.to_pylist()))


def check_against_all_logs(table):
    """Compare every sidecar of the table with what its logs and base file say."""
    state = TableState.load(table.storage)
    context = read_context(table.storage, state.config, state.timeline)
    sidecars = listed_sidecars(table)
    for file_slice in state.view(None).latest_slices():
        expected = content(resolve_delta(context, file_slice))
        path = sidecars.get(file_slice.file_id)
        assert ([], []) == expected if path is None else content(read_sidecar(table.storage, path, context.schema)) == expected  # fmt: skip


def made_by(result):
    return {path for path, _ in made_sidecars(result.metadata).values()}


@pytest.mark.parametrize("ordered", [False, True], ids=["newest commit wins", "greater ts wins"])
def test_after_random_writes_each_sidecar_is_what_all_logs_say(spark, tmp_path, ordered):
    table = create(spark, tmp_path, precombine_field="ts" if ordered else None)
    table.insert(spark.range(0, 40).selectExpr("id", "10L as ts", "'base' as v", "false as _hoodie_is_deleted"), options=QUIET)  # fmt: skip
    random_ = random.Random(int(ordered))
    made = set()
    for step in range(7):
        keys = random_.sample(range(40), 9)
        if step == 3:
            result = table.delete(spark.createDataFrame([(key,) for key in keys], "id long"), options=QUIET)
        else:
            batch = [(key, random_.randrange(5, 20), f"at {step}", not ordered and random_.random() < 0.3) for key in keys]  # fmt: skip
            result = table.upsert(
                spark.createDataFrame(batch, COLUMNS), options=EXECUTORS if step == 5 else QUIET
            )
        assert made_by(result) <= set(listed_sidecars(table).values())
        made |= made_by(result)
        check_against_all_logs(table)
    assert len(made) >= 4


def test_what_the_tasks_made_is_published_and_nothing_is_merged_again(spark, tmp_path, monkeypatch):
    table = create(spark, tmp_path)
    table.insert(spark.range(0, 20).selectExpr("id", "'base' as v"), options=QUIET)
    for number in (1, 2):
        result = table.upsert(spark.createDataFrame([(number, "new")], "id long, v string"), options=QUIET)
        assert made_by(result) == set(listed_sidecars(table).values())
        assert len(made_by(result)) == 1
    delta = spark.read.parquet(
        str(tmp_path / "t" / result.metadata.partition_to_write_stats[""][0].sidecar[0])
    )
    assert delta.where("v is not null").count() == 2


def test_after_the_log_of_another_writer_all_logs_are_merged_again(spark, tmp_path):
    table = create(spark, tmp_path)
    table.insert(spark.range(0, 20).selectExpr("id", "'base' as v"), options=QUIET)
    unpublished = {**QUIET, "hoodie.engine.publish.manifest": "false"}
    table.upsert(spark.createDataFrame([(1, "other")], "id long, v string"), options=unpublished)
    result = table.upsert(spark.createDataFrame([(2, "new")], "id long, v string"), options=QUIET)
    assert made_by(result) == set()
    check_against_all_logs(table)
    again = table.upsert(spark.createDataFrame([(3, "new")], "id long, v string"), options=QUIET)
    assert made_by(again) == set(listed_sidecars(table).values())
    check_against_all_logs(table)


def test_a_state_with_another_log_than_the_sidecar_was_made_for_does_not_get_it(spark, tmp_path):
    table = create(spark, tmp_path)
    table.insert(spark.range(0, 20).selectExpr("id", "'base' as v"), options=QUIET)
    unpublished = {**QUIET, "hoodie.engine.publish.manifest": "false"}
    first = table.upsert(spark.createDataFrame([(1, "one")], "id long, v string"), options=QUIET)
    table.upsert(spark.createDataFrame([(2, "two")], "id long, v string"), options=unpublished)
    publish(table.storage)
    assert not made_by(first) & set(listed_sidecars(table).values())
    check_against_all_logs(table)


def test_live_rows_that_all_stay_are_not_encoded_again(spark, tmp_path, monkeypatch):
    taken = []
    encoded = sidecars.SidecarBefore._groups
    monkeypatch.setattr(
        sidecars.SidecarBefore, "_groups", lambda *given: taken.append(encoded(*given)) or taken[-1]
    )
    table = create(spark, tmp_path, precombine_field="ts")

    def some(start, end, ts):
        return spark.range(start, end).selectExpr("id", f"{ts}L as ts", "sha2(cast(id as string), 256) as v")

    table.bulk_insert(some(0, 20_000, 10), options=QUIET)
    # The third takes rows of the second over, the fourth is late in part; then rows go, and others come again.
    for start, end, ts in (
        (0, 3000, 20),
        (3000, 6000, 20),
        (5000, 8000, 30),
        (7500, 9500, 25),
        (12_000, 15_000, 30),
    ):
        table.upsert(some(start, end, ts), options={**QUIET, "hoodie.logfile.data.block.format": "parquet"})
        check_against_all_logs(table)
    table.delete(spark.range(19_000, 19_010).selectExpr("id"), options=QUIET)
    check_against_all_logs(table)
    table.delete(spark.range(13_000, 13_010).selectExpr("id"), options=QUIET)
    check_against_all_logs(table)
    rows = [[group.rows for group in groups] for groups in taken]
    assert rows == [
        [3000],
        [3000, 3000],
        [3000, 3000, 2000],
        [3000, 3000, 2000, 1500],
        [3000, 3000, 2000, 1500, 3000],
        [3000, 3000, 2000, 1500, 3000],
        [3000, 3000, 2000, 1500, 2990],
    ]
    assert table.snapshot().count() == 20_000 - 20


def test_numbers_that_are_none_and_zeros_with_a_sign_are_found_in_rows_that_were_encoded_once(
    spark, tmp_path, monkeypatch
):
    taken = []
    encoded = sidecars.SidecarBefore._groups
    monkeypatch.setattr(
        sidecars.SidecarBefore, "_groups", lambda *given: taken.append(encoded(*given)) or taken[-1]
    )
    table = create(spark, tmp_path, precombine_field="ts")
    numbers = "case id % 3 when 0 then double('NaN') when 1 then double('-0.0') else 1.5D end as p"

    def some(start, end, ts, number):
        return spark.range(start, end).selectExpr(
            "id", f"{ts}L as ts", "sha2(cast(id as string), 256) as v", number
        )

    table.bulk_insert(some(0, 9000, 10, "2D as p"), options=QUIET)
    options = {**QUIET, "hoodie.logfile.data.block.format": "parquet"}
    table.upsert(some(0, 3000, 20, numbers), options=options)
    table.upsert(some(3000, 6000, 20, "3D as p"), options=options)
    assert [len(groups) for groups in taken] == [1, 2]
    found = table.snapshot()
    for condition, count in (
        ("p > 5", 1000),
        ("p = 0.0", 1000),
        ("isnan(p)", 1000),
        ("p = 1.5", 1000),
        ("p >= 2", 7000),
    ):
        assert found.where(condition).count() == count, condition

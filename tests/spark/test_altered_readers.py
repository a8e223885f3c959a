"""Frames of changes that were made before their table got other columns."""

from __future__ import annotations

from tests.helpers.keyed import keyed_table

COLUMNS = "id int, ts bigint, name string"
KEPT = {"hoodie.clean.automatic": "false", "hoodie.engine.schema.evolution": "any"}


def test_a_frame_of_changes_keeps_its_window_and_columns(spark, tmp_path):
    table = keyed_table(spark, tmp_path / "t", partition_by=(), schema=COLUMNS, options=KEPT)
    table.upsert(spark.createDataFrame([(1, 1, "one")], COLUMNS))
    first = table.timeline()[0].requested_time
    table.upsert(spark.createDataFrame([(2, 2, "two")], COLUMNS))
    frames = [table.changes(first, mode=mode) for mode in ("net", "all", "latest")]
    table.upsert(spark.createDataFrame([(3, 3, "three", 7)], f"{COLUMNS}, extra int"))
    table.upsert(spark.createDataFrame([(2, 4, 22, 7)], "id int, ts bigint, name int, extra int"))
    for frame in frames:
        assert [tuple(row)[:3] for row in frame.collect()] == [(2, 2, "two")]

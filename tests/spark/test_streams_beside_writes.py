"""Streams of changes beside writes that are under way."""

from __future__ import annotations

import pytest

from tests.helpers.handmade import HandmadeTable, file_id
from tests.spark.test_change_source import source  # noqa: F401
from tests.unit.services.tables import DAY_1, SCHEMA, batch


@pytest.mark.usefixtures("source")
@pytest.mark.parametrize("end", [False, True])
def test_what_is_available_is_told_beside_a_write_that_began_before_the_streams_start(spark, tmp_path, end):
    table = HandmadeTable(tmp_path / "t", SCHEMA, ("day",))

    def commit(name):
        return table.commit({DAY_1: {file_id(): batch({name: 1}, DAY_1)}})

    def begin_write():
        begun = table.path / ".hoodie" / f"{table.next_instant()}.commit.requested"
        begun.touch()
        return begun

    begin_write()
    start, last = commit("a"), commit("b")
    options = {"start": start, "max_commits": "1", **({"end": last} if end else {})}
    seen = []

    def run():
        frame = spark.readStream.format("hudi_changes").options(**options).load(str(table.path))
        query = (
            frame.writeStream.foreachBatch(lambda rows, _: seen.extend(row["id"] for row in rows.collect()))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)
        assert not query.isActive

    run()
    assert seen == ["b"]
    commit("c")
    pending = begin_write()
    commit("d")
    run()
    assert seen == (["b"] if end else ["b", "c"]), "the write after the start ends what is available"
    pending.unlink()
    run()
    assert seen == (["b"] if end else ["b", "c", "d"])

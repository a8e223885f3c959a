"""The archive: ours read by Apache Hudi, Apache Hudi's read by us, and both going on behind each other's."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine import HudiTable
from hudi_engine.format.timeline.active import Timeline

from tests.helpers.forms import forms, named
from tests.judge.apache_hudi import VERSIONS
from tests.judge.arrow_rows import rows_of_spark
from tests.judge.readers import Judges, assert_all_read
from tests.judge.rows import difference, without_meta
from tests.judge.shapes import COLUMNS, SCHEMA, SHAPES, Shape, row

EARLY = {
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.clean.commits.retained": "1",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "2",
}
BOTH = [SHAPES[0], SHAPES[3]]
ALL_TIME = {"start_ts": "20200101000000000", "end_ts": "20990101000000000", "limit": 100}


def written(shape: Shape, spark: Any, path: Path) -> tuple[HudiTable, Any]:
    """Nine writes, one of them an insert overwrite, with clean, compaction and archive after each."""
    table, oracle = shape.create(HudiTable, spark, str(path)), shape.oracle()
    for step in range(1, 10):
        rows = [row(number, 10 * step) for number in range(step, step + 6)]
        frame = spark.createDataFrame(rows, COLUMNS)
        if step == 3:
            oracle.overwrite_partitions(rows)
            table.insert_overwrite(frame, options=EARLY)
        else:
            oracle.upsert(rows)
            table.upsert(frame, options=EARLY)
    return table, oracle


def completed(table: HudiTable) -> tuple[set[str], set[str]]:
    """Times of the completed writes on the active timeline and in the archive."""
    timeline = Timeline.load(table.storage, table.config)
    writes = {"commit", "deltacommit", "replacecommit"}
    return (
        {each.requested_time for each in timeline.completed_writes},
        {
            each.requested_time
            for each in timeline.archived.instants
            if each.is_completed and each.action in writes
        },
    )


@pytest.mark.parametrize("shape", forms(BOTH, BOTH[:1]), ids=named)
def test_apache_hudi_reads_and_lists_what_we_archived_and_archives_behind_it(
    shape: Shape, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    path = tmp_path / "t"
    table, oracle = written(shape, spark, path)
    active, archived = completed(table)
    assert len(active) <= 5 and archived and max(archived) < min(active)
    assert_all_read(path, oracle.rows(), apache_hudi)
    for version in VERSIONS:
        listed = apache_hudi(version).call(path, "show_archived_commits", **ALL_TIME)
        times = [each["commit_time"] for each in listed]
        assert set(times) == archived and len(times) == len(set(times)), version

    everything = active | archived
    for step, version in enumerate(VERSIONS, 10):
        rows = [row(number, 10 * step) for number in (0, step)]
        oracle.upsert(rows)
        limits = {
            "hoodie.keep.min.commits": "2",
            "hoodie.keep.max.commits": "3",
            "hoodie.clean.automatic": "true",
            "hoodie.clean.commits.retained": "1",
            "hoodie.archive.automatic": "true",
        }
        apache_hudi(version).upsert(
            path, pa.Table.from_pylist(rows, schema=SCHEMA), shape.hudi_options() | limits
        )
        now_active, now_archived = completed(table)
        assert everything <= now_active | now_archived and archived <= now_archived, version
        assert difference(without_meta(rows_of_spark(table.snapshot())), oracle.rows()) == "", version
        everything, archived = now_active | now_archived, now_archived
    assert len(active) < len(everything) - len(now_active)
    rows = [row(1, 200), row(50, 200)]
    oracle.upsert(rows)
    table.upsert(spark.createDataFrame(rows, COLUMNS), options=EARLY)
    assert_all_read(path, oracle.rows(), apache_hudi)


STEPS, LOOK_EVERY = 24, 8


@pytest.mark.parametrize("shape", forms(BOTH, BOTH[1:]), ids=named)
def test_random_years_of_a_table_read_equal_by_every_reader(
    shape: Shape, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    """Writes with services after each; in between savepoints, restores, deleted savepoints and cleans."""
    table, oracle = shape.create(HudiTable, spark, str(tmp_path / "t")), shape.oracle()
    chance, saved, done = random.Random(11), dict[str, Any](), list[str]()
    for step in range(1, STEPS + 1):
        kinds = (
            ["upsert"] * 6
            + ["delete", "delete", "overwrite", "savepoint", "archive"]
            + ["restore", "release"] * bool(saved)
        )
        kind = "upsert" if step == 1 else chance.choice(kinds)
        rows = [row(number, 10 * step, price=chance.random()) for number in chance.sample(range(25), 6)]
        if kind == "savepoint":
            saved[table.savepoint().instant] = copy.deepcopy(oracle)
        elif kind == "release":
            table.delete_savepoint(instant := min(saved))
            del saved[instant]
        elif kind == "restore":
            table.restore(instant := max(saved))
            oracle = copy.deepcopy(saved[instant])
        elif kind == "archive":
            beyond = {"hoodie.archive.beyond.savepoint": "false" if saved else "true"}
            table.archive(2, 3, options=EARLY | beyond)
        else:
            write = {"upsert": table.upsert, "delete": table.delete, "overwrite": table.insert_overwrite}[
                kind
            ]
            write(spark.createDataFrame(rows, COLUMNS), options=EARLY)
            {"upsert": oracle.upsert, "delete": oracle.delete, "overwrite": oracle.overwrite_partitions}[
                kind
            ](rows)
        done.append(kind)
        assert difference(without_meta(rows_of_spark(table.snapshot())), oracle.rows()) == "", done
        if step % LOOK_EVERY == 0:
            assert_all_read(tmp_path / "t", oracle.rows(), apache_hudi)
    assert completed(table)[1], "nothing was archived"

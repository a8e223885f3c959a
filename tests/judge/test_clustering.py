"""Clustering: ours, Apache Hudi's, and one going on with what the other planned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.helpers.forms import forms, in_turn, named
from tests.judge.apache_hudi import VERSIONS
from tests.judge.readers import Judges, assert_all_read, assert_same_meta
from tests.judge.shapes import SHAPES, Shape
from tests.judge.test_table_services import NO_CLEAN, assert_ours, change, written

COW, MOR = SHAPES[0], SHAPES[3]
EACH = pytest.mark.parametrize(("shape", "version"), in_turn((COW, MOR), VERSIONS), ids=named)


@pytest.mark.parametrize("shape", forms((COW, MOR), (MOR,)), ids=named)
def test_every_reader_sees_our_clustered_table_and_apache_hudi_clusters_it_on(
    shape: Shape, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    path = tmp_path / "t"
    table, oracle = written(shape, spark, path)
    assert table.cluster(["price", "name"], strategy="z-order", options=NO_CLEAN).state == "completed"
    assert_all_read(path, oracle.rows(), apache_hudi)
    assert_same_meta(path, table.snapshot(), apache_hudi)
    change(table, oracle, spark, 50, 0, 2, 20)
    shuffled = {**NO_CLEAN, "hoodie.engine.clustering.task.bytes": "0"}
    assert table.cluster(["ts"], options=shuffled).state == "completed"
    assert_all_read(path, oracle.rows(), apache_hudi)
    for number, version in enumerate(VERSIONS):
        (done,) = apache_hudi(version).call(path, "run_clustering", order="name")
        assert done["state"] == "COMPLETED"
        assert_ours(table, oracle)
        change(table, oracle, spark, 60 + number, 3, 30 + number)
    assert [each.state for each in table.clusterings()] == ["COMPLETED"] * 4
    assert_all_read(path, oracle.rows(), apache_hudi)


@EACH
def test_apache_hudi_runs_the_clustering_that_we_planned(
    shape: Shape, version: str, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    path = tmp_path / "t"
    table, oracle = written(shape, spark, path)
    planned = table.schedule_clustering(["price", "name"], strategy="hilbert", options=NO_CLEAN).instant
    (shown,) = apache_hudi(version).call(path, "run_clustering", op="execute")
    assert (shown["timestamp"], shown["state"]) == (planned, "COMPLETED")
    assert [(each.instant, each.state) for each in table.clusterings()] == [(planned, "COMPLETED")]
    assert_ours(table, oracle)
    change(table, oracle, spark, 60, 0, 3, 30)
    assert_all_read(path, oracle.rows(), apache_hudi)


@EACH
def test_we_run_the_clustering_that_apache_hudi_planned(
    shape: Shape, version: str, spark: Any, tmp_path: Path, apache_hudi: Judges
) -> None:
    path = tmp_path / "t"
    table, oracle = written(shape, spark, path)
    apache_hudi(version).call(path, "run_clustering", op="schedule", order="price")
    (planned,) = table.clusterings()
    assert planned.state == "REQUESTED"
    done = table.cluster(options=NO_CLEAN)
    assert (done.instant, done.state, done.rows) == (planned.instant, "completed", len(oracle.rows()))
    assert_ours(table, oracle)
    assert_all_read(path, oracle.rows(), apache_hudi)
    ours = [(each.instant, each.state) for each in table.clusterings()]
    theirs = apache_hudi(version).call(path, "show_clustering")
    assert [(each["timestamp"], each["state"]) for each in theirs] == ours

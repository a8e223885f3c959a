"""Clustering without Spark: what a plan takes, what a run writes, and who may write meanwhile."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hudi_engine.errors import (
    ConfigError,
    CorruptTableError,
    IncompleteWriteError,
    PlannedMeanwhileError,
    ServiceError,
    TimelineError,
    UnsupportedTableError,
    WriteConflictError,
)
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.avro_file import decode_avro_file
from hudi_engine.table.services import (
    Workers,
    archive,
    clean,
    run_after_commit,
    run_clustering,
    schedule_clustering,
    show_clusterings,
)
from hudi_engine.table.services.clustering.plan import ClusteringPlan
from hudi_engine.table.services.clustering.schedule import clustering_options
from hudi_engine.table.txn.conflict import (
    FileGroup,
    PlannedBy,
    planned_groups,
    reject_planned_groups,
    updates_allowed,
)
from hudi_engine.table.txn.owner import Liveness

from tests.unit.services import tables
from tests.unit.services.tables import DAY_1, DAY_2, GROUP_1, GROUP_2, GROUP_3, MERGED, options, rows

BY_QTY = {"clustering__plan__strategy__sort__columns": "qty"}


def closed_now(storage: LocalStorage) -> Mapping[FileGroup, PlannedBy]:
    config = TableConfig.load(storage)
    return planned_groups(tables.timeline(storage), options(), Liveness(storage, config, options()))


def mor(path: Path) -> LocalStorage:
    return LocalStorage(str(tables.merge_on_read(path / "t").path))


def plan_of(storage: LocalStorage, instant: str | None) -> dict:
    return decode_avro_file(storage.read(f".hoodie/{instant}.replacecommit.requested"))


def test_a_plan_names_slices_groups_and_columns_as_hudi_does(tmp_path: Path) -> None:
    storage = mor(tmp_path)
    done = schedule_clustering(storage, options(**BY_QTY))
    assert (done.state, done.groups, done.file_groups, done.files_read) == ("scheduled", 2, 3, 6)
    record = plan_of(storage, done.instant)
    plan = record["clusteringPlan"]
    assert record["operationType"] == "CLUSTER" and plan["preserveHoodieMetadata"] is True
    assert plan["strategy"] == {
        "strategyClassName": "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy",
        "strategyParams": {"hoodie.clustering.plan.strategy.sort.columns": "qty"},
        "version": 1,
    }
    slices = {each["fileId"]: each for group in plan["inputGroups"] for each in group["slices"]}
    assert slices[GROUP_2]["dataFilePath"].startswith(f"{storage.uri()}/{DAY_1}/{GROUP_2}_")
    assert (len(slices[GROUP_1]["deltaFilePaths"]), slices[GROUP_2]["deltaFilePaths"]) == (2, [])
    assert [group["metrics"]["TOTAL_LOG_FILES"] for group in plan["inputGroups"]] == [2.0, 1.0]
    assert rows(storage) == MERGED


def test_a_run_merges_logs_sorts_and_replaces_and_rows_keep_their_commit(tmp_path: Path) -> None:
    storage = mor(tmp_path)
    before = tables.writes(storage)
    done = run_clustering(storage, options(**BY_QTY))
    assert (done.state, done.files_written, done.rows, done.partitions) == ("completed", 2, 4, (DAY_1, DAY_2))
    assert rows(storage) == rows(storage, read_optimized=True) == MERGED
    (path,) = (Path(storage.base) / DAY_1).glob(f"*_{done.instant}.parquet")
    file = pq.read_table(path)
    assert file.column("qty").to_pylist() == [3, 10]
    assert set(file.column("_hoodie_commit_time").to_pylist()) == {before[0], before[2]}
    assert set(file.column("_hoodie_file_name").to_pylist()) == {path.name}
    statistics = pq.ParquetFile(path).metadata.row_group(0).column(file.column_names.index("qty")).statistics
    assert (statistics.min, statistics.max) == (3, 10)
    newest = tables.timeline(storage).newest_metadata()
    assert newest is not None and newest.operation_type == "CLUSTER"
    replaced = newest.partition_to_replace_file_ids or {}
    assert {day: sorted(ids) for day, ids in replaced.items()} == {
        DAY_1: [GROUP_1, GROUP_2],
        DAY_2: [GROUP_3],
    }
    for index, instant in enumerate(before):
        assert (
            rows(storage, instant)
            == [{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}, {"a": 9, "b": 2, "c": 3, "d": 40, "e": 5}, MERGED][
                index
            ]
        )


def test_rows_become_the_clusterings_own_when_commit_metadata_is_not_preserved(tmp_path: Path) -> None:
    storage = mor(tmp_path)
    done = run_clustering(storage, options(clustering__preserve__commit__metadata="false"))
    for path in Path(storage.base).glob(f"*/*_{done.instant}.parquet"):
        assert set(pq.read_table(path).column("_hoodie_commit_time").to_pylist()) == {done.instant}
    assert rows(storage) == MERGED


def test_a_plan_that_stands_is_run_by_the_next_call_and_one_is_made_when_there_is_none(
    tmp_path: Path,
) -> None:
    storage = mor(tmp_path)
    assert run_clustering(storage, options(), plans=False).reason == "no clustering is planned"
    planned = schedule_clustering(storage, options())
    assert schedule_clustering(storage, options()).reason.startswith("every file group is being")
    with pytest.raises(TimelineError, match=f"planned are: {planned.instant}"):
        run_clustering(storage, options(), instant="20200101000000000")
    assert run_clustering(storage, options()).instant == planned.instant
    assert [(each.instant, each.state, each.file_groups) for each in show_clusterings(storage)] == [
        (planned.instant, "COMPLETED", 3)
    ]


def test_a_look_plans_nothing(tmp_path: Path) -> None:
    storage = mor(tmp_path)
    looked = schedule_clustering(storage, options(), dry_run=True)
    assert (looked.instant, looked.file_groups, looked.partitions) == (None, 3, (DAY_1, DAY_2))
    assert show_clusterings(storage) == []


@pytest.mark.parametrize(
    ("given", "partitions"),
    [
        ({}, (DAY_1, DAY_2)),
        (
            {
                "clustering__plan__partition__filter__mode": "RECENT_DAYS",
                "clustering__plan__strategy__daybased__lookback__partitions": 1,
            },
            (DAY_2,),
        ),
        (
            {
                "clustering__plan__strategy__class": "x.SparkRecentDaysClusteringPlanStrategy",
                "clustering__plan__strategy__daybased__skipfromlatest__partitions": 1,
            },
            (DAY_1,),
        ),
        (
            {
                "clustering__plan__strategy__class": "SparkSelectedPartitionsClusteringPlanStrategy",
                "clustering__plan__strategy__cluster__begin__partition": DAY_2,
            },
            (DAY_2,),
        ),
        (
            {
                "clustering__plan__partition__filter__mode": "SELECTED_PARTITIONS",
                "clustering__plan__strategy__cluster__end__partition": DAY_1,
            },
            (DAY_1,),
        ),
        ({"clustering__plan__strategy__partition__selected": f"{DAY_1}, day=9"}, (DAY_1,)),
        ({"clustering__plan__strategy__partition__regex__pattern": ".*2"}, (DAY_2,)),
        ({"clustering__plan__strategy__max__num__groups": 1}, (DAY_1,)),
        ({"clustering__plan__strategy__small__file__limit": 1}, ()),
    ],
    ids=str,
)
def test_the_partitions_of_a_plan(
    given: dict[str, object], partitions: tuple[str, ...], tmp_path: Path
) -> None:
    looked = schedule_clustering(mor(tmp_path), options(**given), dry_run=True)
    assert looked.partitions == partitions
    assert bool(looked.reason) is not bool(partitions)


@pytest.mark.parametrize("path", [f"{DAY_1},{DAY_2}", f"{DAY_1} ", ""])
def test_a_path_that_would_name_other_partitions_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="cannot be chosen for a clustering by its path.*regex.pattern"):
        clustering_options(options(), partitions=["day=3", path])


def test_groups_and_files_are_as_large_as_the_limits_say(tmp_path: Path) -> None:
    storage = mor(tmp_path)
    limits = {
        "clustering__plan__strategy__max__bytes__per__group": 1,
        "clustering__plan__strategy__target__file__max__bytes": 100_000_000,
    }
    assert schedule_clustering(storage, options(**limits, **BY_QTY), dry_run=True).groups == 3
    alone = options(
        **limits, **BY_QTY, clustering__plan__strategy__single__group__clustering__enabled="false"
    )
    assert schedule_clustering(storage, alone, dry_run=True).groups == 0
    small = run_clustering(storage, options(clustering__plan__strategy__target__file__max__bytes=1, **BY_QTY))
    assert small.files_written == 4 and rows(storage) == MERGED


def test_logs_count_for_what_they_become(tmp_path: Path) -> None:
    storage = mor(tmp_path)
    target = {
        "clustering__plan__strategy__target__file__max__bytes": 450_000,
        "clustering__plan__strategy__partition__selected": DAY_2,
    }
    outputs = []
    for ratio in ("0", "1000"):
        done = schedule_clustering(storage, options(**target, logfile__to__parquet__compression__ratio=ratio))
        outputs.append(
            plan_of(storage, done.instant)["clusteringPlan"]["inputGroups"][0]["numOutputFileGroups"]
        )
        storage.delete(f".hoodie/{done.instant}.replacecommit.requested")
    assert outputs[0] < outputs[1]


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (
            {"clustering__plan__strategy__class": "x.SparkSingleFileSortPlanStrategy"},
            ConfigError,
            "legal values: SparkSizeBased",
        ),
        (
            {"clustering__plan__strategy__sort__columns": "nothing"},
            ConfigError,
            "the table's columns are: id, qty, day",
        ),
        (
            {"clustering__execution__strategy__class": "x.SparkBinaryCopyClusteringExecutionStrategy"},
            UnsupportedTableError,
            "SortAndSize",
        ),
        ({"index__type": "BUCKET", "bucket__index__num__buckets": 2}, ConfigError, "bucket"),
        (
            {"clustering__plan__strategy__partition__regex__pattern": "("},
            ConfigError,
            "no regular expression",
        ),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_by_name_before_anything_is_planned(
    given: dict[str, object], error: type[Exception], said: str, tmp_path: Path
) -> None:
    storage = mor(tmp_path)
    for call in (schedule_clustering, run_clustering):
        with pytest.raises(error, match=said):
            call(storage, options(**given))
    assert show_clusterings(storage) == []


def test_inline_and_scheduled_inline_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="both true"):
        options(clustering__inline="true", clustering__schedule__inline="true")


def test_a_group_too_large_for_a_task_asks_for_spark_and_the_plan_stands(tmp_path: Path) -> None:
    storage = mor(tmp_path)
    with pytest.raises(ServiceError, match="needs Spark"):
        run_clustering(storage, options(engine__clustering__task__bytes=0))
    assert [each.state for each in show_clusterings(storage)] == ["REQUESTED"]
    assert run_clustering(storage, options()).state == "completed"


def test_inline_clustering_waits_for_commits_and_counts_from_the_last_clustering(tmp_path: Path) -> None:
    storage = mor(tmp_path)
    inline = {"clustering__inline": "true", "clean__automatic": "false"}
    assert run_after_commit(storage, options(**inline)).clusterings == ()
    report = run_after_commit(storage, options(**inline, clustering__inline__max__commits=3))
    assert [each.state for each in report.clusterings] == ["completed"] and report.failures == ()
    assert run_after_commit(storage, options(**inline, clustering__inline__max__commits=1)).clusterings == ()
    assert rows(storage) == MERGED


def test_scheduled_inline_only_plans_and_inline_runs_the_plan(tmp_path: Path) -> None:
    storage = mor(tmp_path)
    plan_only = options(
        clustering__schedule__inline="true", clustering__inline__max__commits=1, clean__automatic="false"
    )
    assert [each.state for each in run_after_commit(storage, plan_only).clusterings] == ["scheduled"]
    inline = options(clustering__inline="true", clean__automatic="false")
    assert [each.state for each in run_after_commit(storage, inline).clusterings] == ["completed"]


def test_clean_and_archive_leave_what_a_plan_needs(tmp_path: Path) -> None:
    table = tables.copy_on_write(tmp_path / "t", 4)
    storage = LocalStorage(str(table.path))
    planned = schedule_clustering(storage, options(clustering__plan__strategy__sort__columns="qty"))
    for number in (5, 6, 7):
        table.commit({DAY_2: {GROUP_2: tables.batch({"x": number}, DAY_2)}})
    clean(storage, options(), retain_commits=1)
    kept = archive(storage, options(keep__min__commits=2, keep__max__commits=3, clean__commits__retained=1))
    assert all(each < str(planned.instant) for each in kept.instants)
    assert run_clustering(storage, options()).state == "completed"
    assert rows(storage) == {"a": 4, "x": 7}


def changed_since(storage: LocalStorage, table: object) -> None:
    """Let another program write into a file group of a plan."""
    tables.update(table, {(DAY_1, GROUP_1): {"a": 11}}, tables.writes(storage)[0])  # type: ignore[arg-type]


def test_a_plan_whose_file_groups_changed_is_not_run_and_is_taken_back_on_request(tmp_path: Path) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    storage = LocalStorage(str(table.path))
    planned = schedule_clustering(storage, options()).instant
    changed_since(storage, table)
    with pytest.raises(ServiceError, match=f"roll {planned} back"):
        run_clustering(storage, options())
    taken = run_clustering(
        storage, options(clustering__rollback__pending__replacecommit__on__conflict="true")
    )
    assert "was rolled back" in taken.reason and show_clusterings(storage) == []
    assert run_clustering(storage, options()).state == "completed"
    assert rows(storage) == {**MERGED, "a": 11}


def test_a_change_while_the_clustering_runs_stops_its_commit(tmp_path: Path) -> None:
    table = tables.merge_on_read(tmp_path / "t")
    storage = LocalStorage(str(table.path))

    def meanwhile(function, items):  # type: ignore[no-untyped-def]
        changed_since(storage, table)
        return [function(each) for each in items]

    with pytest.raises(WriteConflictError, match="changed or replaced a file group being clustered"):
        run_clustering(storage, options(), workers=Workers(meanwhile))
    assert rows(storage) == {**MERGED, "a": 11}
    assert [each.state for each in show_clusterings(storage)] == ["REQUESTED"]


def test_a_write_to_file_groups_of_a_clustering_that_runs_is_told_to_wait(tmp_path: Path) -> None:
    storage = mor(tmp_path)
    told: list[str] = []

    def meanwhile(function, items):  # type: ignore[no-untyped-def]
        with pytest.raises(WriteConflictError) as refused:
            reject_planned_groups([(DAY_2, GROUP_3)], closed_now(storage))
        assert not isinstance(refused.value, PlannedMeanwhileError)
        told.append(str(refused.value))
        return [function(each) for each in items]

    done = run_clustering(storage, options(), workers=Workers(meanwhile)).instant
    assert told[0].startswith(
        f"file group {GROUP_3!r} of partition {DAY_2!r} is part of clustering {done}, which another process is running now"
    )
    assert "Wait until it is done" in told[0] and "roll it back" not in told[0]
    assert closed_now(storage) == {}


def test_who_may_write_to_planned_file_groups(tmp_path: Path) -> None:
    storage = mor(tmp_path)
    planned = schedule_clustering(storage, options()).instant
    timeline = tables.timeline(storage)
    closed = closed_now(storage)
    assert closed[DAY_1, GROUP_1] == PlannedBy(planned, awaited=True) and len(closed) == 3
    with pytest.raises(WriteConflictError, match="is planned and not done") as awaited:
        reject_planned_groups([(DAY_2, GROUP_3)], closed)  # who has just planned it may be about to run it
    assert not isinstance(awaited.value, PlannedMeanwhileError)
    for request in tmp_path.rglob(f"{planned}*.requested"):
        os.utime(request, (0, 0))
    closed = closed_now(storage)
    assert closed[DAY_1, GROUP_1] == PlannedBy(planned)
    with pytest.raises(PlannedMeanwhileError, match=f"clustering {planned}.*nothing was written"):
        reject_planned_groups([(DAY_2, GROUP_3)], closed)
    reject_planned_groups([(DAY_2, "another")], closed)
    allow = options(clustering__updates__strategy="x.SparkAllowUpdateStrategy")
    config = TableConfig.load(storage)
    assert updates_allowed(allow)
    assert planned_groups(timeline, allow, Liveness(storage, config, allow)) == {}
    with pytest.raises(
        ConfigError, match="legal values: SparkRejectUpdateStrategy, SparkAllowUpdateStrategy"
    ):
        updates_allowed(options(clustering__updates__strategy="SparkConsistentBucketDuplicateUpdateStrategy"))


def test_a_record_without_a_plan_is_no_clustering() -> None:
    with pytest.raises(CorruptTableError, match="no clustering plan"):
        ClusteringPlan.from_record({"operationType": None}, "x.requested")


def test_paths_of_a_stored_plan_are_compared_and_never_opened(tmp_path: Path) -> None:
    storage = mor(tmp_path)
    planned = schedule_clustering(storage, options())
    path = Path(storage.base) / f".hoodie/{planned.instant}.replacecommit.requested"
    path.write_bytes(path.read_bytes().replace(b"/day=2/", b"/../../"))
    assert run_clustering(storage, options()).state == "completed"
    assert rows(storage) == MERGED


def test_a_slice_is_told_by_all_its_names(tmp_path: Path) -> None:
    storage = mor(tmp_path)
    planned = schedule_clustering(storage, options())
    plan = ClusteringPlan.from_record(plan_of(storage, planned.instant), "x")
    one = plan.slices[0]
    assert replace(one, names=frozenset()) != one and plan.partitions == {DAY_1, DAY_2}


def test_a_plan_by_another_writers_strategy_is_left_to_it_and_bars_no_other(tmp_path: Path) -> None:
    storage = mor(tmp_path)
    planned = schedule_clustering(
        storage,
        options(
            **BY_QTY,
            clustering__plan__partition__filter__mode="SELECTED_PARTITIONS",
            clustering__plan__strategy__partition__selected=DAY_1,
        ),
    )
    path = f".hoodie/{planned.instant}.replacecommit.requested"
    theirs = storage.read(path).replace(
        b"SparkSortAndSizeExecutionStrategy", b"SparkSingleFileSortExecutStrategy"
    )
    storage.replace(path, theirs)

    assert run_clustering(storage, options(), plans=False).reason == (
        f"the clusterings that are planned ({planned.instant}) are run by others"
    )
    inline = options(**BY_QTY, clustering__inline="true", engine__services__strict="true")
    assert run_after_commit(storage, inline).failures == ()
    ours = run_clustering(storage, options(**BY_QTY))
    assert (ours.state, ours.partitions) == ("completed", (DAY_2,))
    assert rows(storage) == MERGED
    with pytest.raises(UnsupportedTableError, match="SparkSingleFileSort"):
        run_clustering(storage, options(), instant=planned.instant)


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (lambda results: results[1:], "2 groups of file slices were planned and 1 came back"),
        (lambda results: [results[0], *results], "2 groups of file slices were planned and 3 came back"),
        (lambda results: [results[0]] * 2, "2 new file groups were planned and 1 came back"),
    ],
    ids=["missing", "more", "twice"],
)
def test_groups_that_get_lost_or_come_twice_are_no_commit(tmp_path: Path, runs, message: str) -> None:
    storage = mor(tmp_path)
    schedule_clustering(storage, options(**BY_QTY))
    workers = Workers(lambda function, items: runs([function(each) for each in items]))
    with pytest.raises(IncompleteWriteError, match=message):
        run_clustering(storage, options(), workers=workers)
    assert rows(storage) == MERGED
    assert run_clustering(storage, options()).state == "completed"
    assert rows(storage) == MERGED


def test_a_group_with_fewer_rows_than_its_files_is_no_commit(tmp_path: Path) -> None:
    storage = LocalStorage(str(tables.copy_on_write(tmp_path / "t", 2).path))
    before = rows(storage)
    schedule_clustering(storage, options(**BY_QTY))
    workers = Workers(lambda function, items: [[] for _ in items])
    with pytest.raises(ServiceError, match="rows, but 0 of them were written; nothing was committed"):
        run_clustering(storage, options(), workers=workers)
    assert rows(storage) == before

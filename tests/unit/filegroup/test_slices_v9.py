"""File slices of table versions 8 and 9: logs belong to the slice that was newest when they completed."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq


def test_a_log_belongs_to_the_newest_base_requested_before_it_completed(v9) -> None:
    v9.instants(
        "10_15.deltacommit", "20_25.deltacommit", "40_45.deltacommit", "50_55.commit", "60_65.deltacommit"
    )
    v9.files("f@10", "f@20.log.1", "f@40.log.1", "f@50", "f@60.log.1")

    assert v9.history("f") == [["f@50", "f@60.log.1"], ["f@10", "f@20.log.1", "f@40.log.1"]]


def test_a_log_that_completed_after_a_compaction_was_planned_is_not_in_it(v9) -> None:
    v9.instants("10_15.deltacommit", "48_52.deltacommit", "50_55.commit")
    v9.files("f@10", "f@48.log.1", "f@50")

    assert v9.history("f") == [["f@50", "f@48.log.1"], ["f@10"]]


def test_logs_of_a_slice_apply_in_the_order_in_which_they_were_requested(v9) -> None:
    v9.instants("10_15.deltacommit", "20_40.deltacommit", "30_35.deltacommit")
    v9.files("f@10", "f@20.log.1", "f@20.log.2", "f@30.log.1", "g@20.log.1", "g@30.log.1")

    assert v9.latest() == {
        "f": ["f@10", "f@20.log.1", "f@20.log.2", "f@30.log.1"],
        "g": ["g@20.log.1", "g@30.log.1"],
    }


def test_a_log_that_completed_late_goes_to_the_later_slice_before_the_logs_requested_after_it(v9) -> None:
    v9.instants(
        "10_15.deltacommit", "20_70.deltacommit", "30_35.deltacommit", "50_55.commit", "60_65.deltacommit"
    )
    v9.files("f@10", "f@20.log.1", "f@30.log.1", "f@50", "f@60.log.1")

    assert v9.history("f") == [["f@50", "f@20.log.1", "f@60.log.1"], ["f@10", "f@30.log.1"]]


def test_logs_of_uncommitted_instants_are_invisible(v9) -> None:
    v9.instants("10_15.deltacommit", "20.deltacommit.inflight")
    v9.files("f@10", "f@20.log.1", "f@30.log.1", "g@20.log.1")

    assert v9.latest() == {"f": ["f@10"]}


def test_logs_written_while_a_compaction_is_pending_join_the_slice_before(v9) -> None:
    v9.instants("10_15.deltacommit", "20.compaction.requested", "20.compaction.inflight", "30_35.deltacommit")
    v9.files("f@10", "f@20", "f@30.log.1")

    assert v9.latest() == {"f": ["f@10", "f@30.log.1"]}


def test_a_log_only_group_begins_with_its_first_log(v9) -> None:
    v9.instants("10_15.deltacommit", "20_25.deltacommit", "30_35.commit", "40_45.deltacommit")
    v9.files("f@10.log.1", "f@20.log.1", "f@30", "f@40.log.1")

    assert v9.history("f") == [["f@30", "f@40.log.1"], ["f@10.log.1", "f@20.log.1"]]
    assert v9.view().all_slices("")["f"][1].base_instant == "10".zfill(17)


def test_logs_named_after_their_base_file_come_from_version_6_and_stay_with_it(v9) -> None:
    # The upgrade takes modification times for completion times, so 10 seems to complete after 50 was
    # requested.
    v9.instants("10_55.deltacommit", "50_58.commit", "60_65.deltacommit")
    v9.files("f@10", "f@10.log.1", "f@10.log.2", "f@50", "f@60.log.1")

    assert v9.history("f") == [["f@50", "f@60.log.1"], ["f@10", "f@10.log.1", "f@10.log.2"]]


def test_time_travel_goes_by_requested_times(v9) -> None:
    v9.instants("10_15.deltacommit", "20_45.deltacommit", "30_35.deltacommit")
    v9.files("f@10", "f@20.log.1", "f@30.log.1")

    assert v9.latest(as_of="20") == {"f": ["f@10", "f@20.log.1"]}
    assert v9.latest(as_of="19") == {"f": ["f@10"]}


def test_completion_times_of_archived_logs_are_looked_up_in_the_archive(v9) -> None:
    v9.instants("60_65.deltacommit")
    v9.files("f@10", "f@48.log.1", "f@50", "f@60.log.1")
    folder = ".hoodie/timeline/history"
    v9.storage.create(f"{folder}/_version_", b"1")
    v9.storage.create(f"{folder}/manifest_1", json.dumps({"files": [{"fileName": "a.parquet"}]}).encode())
    rows = {"instantTime": ["48".zfill(17)], "completionTime": ["52".zfill(17)], "action": ["deltacommit"]}
    with v9.storage.open_output(f"{folder}/a.parquet") as sink:
        pq.write_table(pa.table(rows), sink)

    assert v9.history("f") == [["f@50", "f@48.log.1", "f@60.log.1"], ["f@10"]]

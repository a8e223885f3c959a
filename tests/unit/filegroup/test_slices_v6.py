"""File slices of table version 6: logs belong to the base instant in their name."""

from __future__ import annotations

import pytest
from hudi_engine.format.timeline.avro_file import encode_avro_file
from hudi_engine.format.timeline.commit_metadata import WriteStat
from hudi_engine.format.timeline.schemas import COMPACTION_PLAN

COMPACT_F = {
    "3.compaction.requested": encode_avro_file(
        COMPACTION_PLAN,
        {"operations": [{"baseInstantTime": "1".zfill(17), "fileId": "f", "partitionPath": ""}]},
    )
}


def test_the_newest_committed_base_file_wins_and_older_ones_are_kept_in_the_history(v6) -> None:
    v6.instants("1.commit", "2.commit")
    v6.files("f@1", "f@2", "g@1")

    assert v6.latest() == {"f": ["f@2"], "g": ["g@1"]}
    assert v6.history("f") == [["f@2"], ["f@1"]]


def test_files_of_unknown_or_pending_instants_are_invisible(v6) -> None:
    v6.instants("3.commit", "4.inflight")
    v6.files("f@3", "f@4", "f@5", "g@4")

    assert v6.latest() == {"f": ["f@3"]}


def test_files_older_than_the_timeline_belong_to_archived_commits(v6) -> None:
    v6.instants("3.commit")
    v6.files("f@1", "g@3")

    assert v6.latest() == {"f": ["f@1"], "g": ["g@3"]}


def test_logs_follow_their_base_file_in_numeric_order(v6) -> None:
    v6.instants("1.deltacommit", "2.commit")
    v6.files("f@1", "f@1.log.1", "f@1.log.10", "f@1.log.9", "f@2", "f@2.log.1")

    assert v6.history("f") == [["f@2", "f@2.log.1"], ["f@1", "f@1.log.1", "f@1.log.9", "f@1.log.10"]]


def test_a_group_may_begin_with_a_log(v6) -> None:
    v6.instants("1.deltacommit")
    v6.files("f@1.log.1", "f@1.log.2")

    (only,) = v6.view().latest_slices()
    assert (only.base_instant, only.base_file) == ("1".zfill(17), None)
    assert v6.latest() == {"f": ["f@1.log.1", "f@1.log.2"]}
    assert v6.view().latest_base_files() == []


def test_a_log_only_group_whose_first_write_never_committed_is_not_there(v6) -> None:
    v6.instants("1.deltacommit", "2.deltacommit.inflight")
    v6.files("f@2.log.1")

    assert v6.latest() == {}


@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_logs_of_a_pending_compaction_are_merged_into_the_slice_before(v6, state: str) -> None:
    v6.instants("1.deltacommit", "3.compaction.requested", "4.deltacommit", bodies=COMPACT_F)
    if state == "inflight":
        v6.instants("3.compaction.inflight")
        v6.files("f@3")
    v6.files("f@1", "f@1.log.1", "f@3.log.1")

    (only,) = v6.view().latest_slices()
    assert only.base_instant == "1".zfill(17)
    assert v6.latest() == {"f": ["f@1", "f@1.log.1", "f@3.log.1"]}


def test_after_the_compaction_its_base_file_begins_a_new_slice(v6) -> None:
    v6.instants("1.deltacommit", "3.compaction.requested", "3.commit", "4.deltacommit", bodies=COMPACT_F)
    v6.files("f@1", "f@1.log.1", "f@3", "f@3.log.1")

    assert v6.history("f") == [["f@3", "f@3.log.1"], ["f@1", "f@1.log.1"]]


def test_logs_of_a_compaction_that_was_given_up_are_not_lost(v6) -> None:
    v6.instants("1.deltacommit", "4.deltacommit")
    v6.files("f@1", "f@1.log.1", "f@3.log.1")

    assert v6.latest() == {"f": ["f@1", "f@1.log.1", "f@3.log.1"]}


def test_a_pending_compaction_of_a_log_only_group_keeps_its_logs_together(v6) -> None:
    v6.instants("1.deltacommit", "3.compaction.requested", "4.deltacommit", bodies=COMPACT_F)
    v6.files("f@1.log.1", "f@3.log.1")

    assert v6.latest() == {"f": ["f@1.log.1", "f@3.log.1"]}


def test_the_read_optimized_view_has_base_files_only(v6) -> None:
    v6.instants("1.deltacommit", "2.commit")
    v6.files("f@1", "f@1.log.1", "f@2", "g@1.log.1")

    assert [(base.file_id, base.instant) for base in v6.view().latest_base_files()] == [("f", "2".zfill(17))]


def test_time_travel_goes_by_requested_times(v6) -> None:
    v6.instants("1.deltacommit", "3.commit", "4.deltacommit", "5.commit")
    v6.files("f@1", "f@1.log.1", "f@3", "f@3.log.1", "f@5", "g@4")

    assert v6.latest(as_of="2") == {"f": ["f@1", "f@1.log.1"]}
    assert v6.latest(as_of="3") == {"f": ["f@3", "f@3.log.1"]}
    assert v6.latest(as_of="4") == {"f": ["f@3", "f@3.log.1"], "g": ["g@4"]}
    assert v6.latest(as_of="9") == {"f": ["f@5"], "g": ["g@4"]}


def test_replaced_groups_are_gone_from_their_instant_on_but_stay_for_cleaning(v6) -> None:
    v6.instants("1.commit")
    v6.instants("2.replacecommit", partition_to_replace_file_ids={"": ["f"]})
    v6.files("f@1", "g@2", "f@3")

    assert v6.latest() == {"g": ["g@2"]}
    assert v6.latest(as_of="1") == {"f": ["f@1"]}
    assert v6.history("f") == [["f@1"]]
    assert v6.view().replaced_groups == {("", "f"): "2".zfill(17)}
    assert [base.file_id for base in v6.view().latest_base_files()] == ["g"]


def test_change_data_files_travel_with_their_slice_but_hold_no_rows(v6) -> None:
    v6.instants("1.commit", "2.commit")
    v6.files("f@1", "f@2", "f@2.log.1.cdc")

    (only,) = v6.view().latest_slices()
    assert only.log_files == ()
    assert [log.name for log in only.cdc_files] == [".f_00000000000000002.log.1_0-1-2.cdc"]


def test_of_two_attempts_at_one_file_the_one_in_the_commit_counts(v6) -> None:
    written = "f_0-0-1_00000000000000002.parquet"
    v6.instants("1.commit")
    v6.instants("2.commit", partition_to_write_stats={"": [WriteStat(file_id="f", path=written)]})
    v6.files("f@1", "f@2~0-0-1", "f@2~0-0-9", "g@1~0-0-1", "g@1~0-0-9")

    assert [base.write_token for base in v6.view().latest_base_files()] == ["0-0-1", "0-0-9"]

"""The active timeline as a reader sees it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.avro_file import encode_avro_file
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.instant import State
from hudi_engine.format.timeline.schemas import COMPACTION_PLAN, REQUESTED_REPLACE_METADATA

MakeTimeline = Callable[..., Timeline]


def at(number: int) -> str:
    """The instant of minute ``number``."""
    return f"202401010000{number:02d}000"


def metadata(**more: Any) -> bytes:
    return CommitMetadata(**more).to_json()


def shown(timeline: Timeline) -> list[tuple[str, str, State]]:
    return [(instant.requested_time, instant.action, instant.state) for instant in timeline.instants]


def test_each_instant_is_listed_once_in_its_newest_state(timeline_of: MakeTimeline) -> None:
    timeline = timeline_of(
        [
            f"{at(1)}.commit.requested", f"{at(1)}.inflight", f"{at(1)}.commit",
            f"{at(2)}.deltacommit.requested", f"{at(2)}.deltacommit.inflight",
            f"{at(3)}.clean.requested",
            "hoodie.properties", ".tmp-1", f".{at(1)}.commit.crc",
        ]
    )  # fmt: skip

    assert shown(timeline) == [
        (at(1), "commit", State.COMPLETED),
        (at(2), "deltacommit", State.INFLIGHT),
        (at(3), "clean", State.REQUESTED),
    ]
    assert [instant.requested_time for instant in timeline.pending] == [at(2), at(3)]
    assert timeline.latest_time == at(3)


def test_a_completed_compaction_is_a_commit_and_nothing_pending(timeline_of: MakeTimeline) -> None:
    timeline = timeline_of(
        [f"{at(1)}.compaction.requested", f"{at(1)}.compaction.inflight", f"{at(1)}.commit",
         f"{at(2)}.logcompaction.requested", f"{at(2)}.deltacommit",
         f"{at(3)}.compaction.requested", f"{at(3)}.compaction.inflight"]
    )  # fmt: skip

    assert shown(timeline) == [
        (at(1), "commit", State.COMPLETED),
        (at(2), "deltacommit", State.COMPLETED),
        (at(3), "compaction", State.INFLIGHT),
    ]


def test_a_completed_clustering_of_layout_2_is_a_replacecommit(timeline_of: MakeTimeline) -> None:
    timeline = timeline_of([f"{at(1)}.clustering.requested", f"{at(1)}_{at(2)}.replacecommit"], version=9)

    assert shown(timeline) == [(at(1), "replacecommit", State.COMPLETED)]
    assert timeline.completion_time(at(1)) == at(2)


def test_a_table_without_instants_has_an_empty_timeline(timeline_of: MakeTimeline) -> None:
    timeline = timeline_of([])

    assert (timeline.instants, timeline.first_write_time, timeline.latest_time) == ((), None, None)
    assert timeline.is_committed(at(1)) is False


def test_instants_before_the_first_write_were_archived_and_count(timeline_of: MakeTimeline) -> None:
    timeline = timeline_of([f"{at(5)}.commit", f"{at(7)}.commit"])

    assert [timeline.is_committed(at(number)) for number in (4, 5, 6, 7, 8)] == [
        True,
        True,
        False,
        True,
        False,
    ]


def test_a_pending_write_older_than_all_others_does_not_count(timeline_of: MakeTimeline) -> None:
    timeline = timeline_of([f"{at(3)}.inflight", f"{at(5)}.commit"])

    assert [timeline.is_committed(at(number)) for number in (2, 3)] == [True, False]


def test_a_savepoint_left_behind_by_archiving_does_not_hide_what_was_archived(
    timeline_of: MakeTimeline,
) -> None:
    timeline = timeline_of([f"{at(1)}.commit", f"{at(1)}.savepoint", f"{at(5)}.commit"])

    assert timeline.first_write_time == at(5)
    assert [timeline.is_committed(at(number)) for number in (1, 3, 5, 6)] == [True, True, True, False]


def test_a_table_with_only_saved_writes_begins_with_them(timeline_of: MakeTimeline) -> None:
    timeline = timeline_of([f"{at(1)}.commit", f"{at(1)}.savepoint"])

    assert [timeline.is_committed(at(number)) for number in (0, 1, 2)] == [True, True, False]


def test_the_committed_test_is_small_picklable_and_bound_in_time(timeline_of: MakeTimeline) -> None:
    timeline = timeline_of([f"{at(5)}.commit", f"{at(7)}.commit"])

    committed = pickle.loads(pickle.dumps(timeline.committed(as_of=at(5))))  # noqa: S301

    assert [committed(at(number)) for number in (4, 5, 7)] == [True, True, False]


def test_layout_1_takes_the_requested_time_for_the_completion_time(timeline_of: MakeTimeline) -> None:
    timeline = timeline_of([f"{at(5)}.commit"])

    assert [timeline.completion_time(at(number)) for number in (4, 5, 6)] == [at(4), at(5), None]


def test_the_schema_is_that_of_the_newest_write_that_has_one(timeline_of: MakeTimeline) -> None:
    timeline = timeline_of(
        {
            f"{at(1)}.commit": metadata(extra_metadata={"schema": "old"}),
            f"{at(2)}.commit": metadata(extra_metadata={"schema": "new"}),
            f"{at(3)}.replacecommit": metadata(extra_metadata={"schema": ""}),
        },
        **{"hoodie.table.create.schema": "created"},
    )

    assert timeline.table_schema_json() == "new"
    assert timeline.table_schema_json(as_of=at(1)) == "old"
    assert timeline.table_schema_json(as_of=at(0)) == "created"


@pytest.mark.parametrize(
    "service",
    [{"operation_type": name} for name in ("CLUSTER", "compact", "LOG_COMPACT", "INDEX")]
    + [{"compacted": True}],
)
def test_the_schema_is_that_of_a_service_only_where_no_write_has_one(
    timeline_of: MakeTimeline, service: dict[str, Any]
) -> None:
    of_service = {f"{at(3)}.commit": metadata(extra_metadata={"schema": "of a service"}, **service)}
    assert (
        timeline_of(of_service, **{"hoodie.table.create.schema": "created"}).table_schema_json()
        == "of a service"
    )

    timeline = timeline_of(
        {
            f"{at(1)}.commit": metadata(extra_metadata={"schema": "old"}),
            f"{at(2)}.commit": metadata(extra_metadata={"schema": "new"}),
        }
    )

    assert timeline.table_schema_json() == "new"
    assert timeline.table_schema_json(as_of=at(1)) == "old"


def test_replaced_file_groups_name_the_instant_that_replaced_them(timeline_of: MakeTimeline) -> None:
    timeline = timeline_of(
        {
            f"{at(1)}.replacecommit": metadata(partition_to_replace_file_ids={"a": ["f", "g"]}),
            f"{at(2)}.replacecommit": metadata(partition_to_replace_file_ids={"b": ["f"]}),
            f"{at(3)}.replacecommit.inflight": b"",
        }
    )

    assert timeline.replaced_file_groups() == {("a", "f"): at(1), ("a", "g"): at(1), ("b", "f"): at(2)}
    assert timeline.replaced_file_groups(as_of=at(1)) == {("a", "f"): at(1), ("a", "g"): at(1)}


def test_pending_plans_tell_which_file_groups_they_hold(timeline_of: MakeTimeline) -> None:
    compaction = encode_avro_file(
        COMPACTION_PLAN, {"operations": [{"baseInstantTime": at(0), "fileId": "f", "partitionPath": "a"}]}
    )
    group = {"slices": [{"fileId": "g", "partitionPath": ""}]}
    clustering = encode_avro_file(
        REQUESTED_REPLACE_METADATA, {"operationType": "CLUSTER", "clusteringPlan": {"inputGroups": [group]}}
    )
    overwrite = encode_avro_file(REQUESTED_REPLACE_METADATA, {})
    timeline = timeline_of(
        {
            f"{at(1)}.compaction.requested": compaction,
            f"{at(2)}.compaction.requested": compaction,
            f"{at(2)}.commit": metadata(),
            f"{at(3)}.replacecommit.requested": clustering,
            f"{at(4)}.replacecommit.requested": overwrite,
            f"{at(5)}.replacecommit.requested": b"",
        }
    )

    assert list(timeline.pending_compaction_plans()) == [at(1)]
    assert timeline.pending_compaction_file_groups() == {("a", "f"): at(1)}
    assert timeline.pending_clustering_file_groups() == {("", "g"): at(3)}


def test_the_workload_of_a_pending_write_is_read_in_both_formats(
    timeline_of: MakeTimeline, storage: LocalStorage
) -> None:
    # A replacecommit in flight stays JSON when Hudi upgrades its table to versions 8 and 9.
    timeline = timeline_of(
        {
            f"{at(1)}.replacecommit.inflight": metadata(operation_type="INSERT_OVERWRITE"),
            f"{at(2)}.inflight": b"",
        },
        version=8,
    )

    overwrite = timeline.planned_metadata(timeline.find(at(1)))
    assert overwrite is not None and overwrite.operation_type == "INSERT_OVERWRITE"
    assert timeline.planned_metadata(timeline.find(at(2))) is None


def test_a_truncated_commit_is_named(timeline_of: MakeTimeline) -> None:
    timeline = timeline_of({f"{at(1)}.commit": metadata()[:10]})

    with pytest.raises(CorruptTableError, match=rf"\.hoodie/{at(1)}\.commit"):
        timeline.commit_metadata(timeline.find(at(1)))


def test_a_commit_that_vanished_after_the_listing_is_explained(
    timeline_of: MakeTimeline, storage: LocalStorage
) -> None:
    timeline = timeline_of([f"{at(1)}.commit"])
    storage.delete(f".hoodie/{at(1)}.commit")

    with pytest.raises(TimelineError, match="it was rolled back"):
        timeline.commit_metadata(timeline.find(at(1)))


def test_an_unknown_instant_is_refused_with_the_newest_ones(timeline_of: MakeTimeline) -> None:
    timeline = timeline_of([f"{at(1)}.commit", f"{at(1)}.savepoint"])

    assert timeline.find(at(1), "savepoint").action == "savepoint"
    with pytest.raises(TimelineError, match=f"no clean '{at(1)}'.*newest instants are: {at(1)}"):
        timeline.find(at(1), "clean")


def test_a_body_is_read_once(timeline_of: MakeTimeline, storage: LocalStorage) -> None:
    timeline = timeline_of({f"{at(1)}.commit": metadata(operation_type="UPSERT")})
    first = timeline.commit_metadata(timeline.find(at(1)))
    storage.replace(f".hoodie/{at(1)}.commit", json.dumps({}).encode())

    assert timeline.commit_metadata(timeline.find(at(1))) is first

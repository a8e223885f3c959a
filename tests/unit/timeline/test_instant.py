"""Names of timeline files, parsed and formatted."""

from __future__ import annotations

import pytest
from hudi_engine.errors import TimelineError
from hudi_engine.format.timeline.instant import ACTIONS, Instant, State, parse_instant, timeline_file_name

T, C = "20240418173213674", "20240418173214000"


@pytest.mark.parametrize(
    ("name", "action", "state"),
    [
        (f"{T}.commit.requested", "commit", State.REQUESTED),
        (f"{T}.inflight", "commit", State.INFLIGHT),
        (f"{T}.commit", "commit", State.COMPLETED),
        (f"{T}.deltacommit.inflight", "deltacommit", State.INFLIGHT),
        (f"{T}.replacecommit.requested", "replacecommit", State.REQUESTED),
        (f"{T}.compaction.inflight", "compaction", State.INFLIGHT),
        (f"{T}.savepoint", "savepoint", State.COMPLETED),
        ("20240418173213.commit", "commit", State.COMPLETED),
        ("00000000000000001.deltacommit", "deltacommit", State.COMPLETED),
        (f"{T}010.deltacommit", "deltacommit", State.COMPLETED),
    ],
)
def test_layout_1_names(name: str, action: str, state: State) -> None:
    assert parse_instant(name, 1) == Instant(name.partition(".")[0], action, state, None, name)


@pytest.mark.parametrize(
    ("name", "action", "state", "completion_time"),
    [
        (f"{T}_{C}.commit", "commit", State.COMPLETED, C),
        (f"{T}.inflight", "commit", State.INFLIGHT, None),
        (f"{T}.clustering.requested", "clustering", State.REQUESTED, None),
        (f"{T}_{C}.replacecommit", "replacecommit", State.COMPLETED, C),
    ],
)
def test_layout_2_names(name: str, action: str, state: State, completion_time: str | None) -> None:
    assert parse_instant(name, 2) == Instant(T, action, state, completion_time, name)


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.properties",
        f".{T}.commit.crc",
        f"._{T}.commit",
        f"{T}.commit.tmp",
        f"{T}.commits",
        f"{T}.commit.inflight.requested",
        f"{T}",
        f"{T}_{C}.commit.inflight",
        "2024.commit",
        f"{T}.compaction",
        ".tmp-0123",
        "archived",
    ],
)
@pytest.mark.parametrize("layout", [1, 2])
def test_other_names_are_no_instants(name: str, layout: int) -> None:
    assert parse_instant(name, layout) is None


def test_completed_names_of_the_other_layout_are_no_instants() -> None:
    assert parse_instant(f"{T}.commit", 2) is None
    assert parse_instant(f"{T}_{C}.commit", 1) is None


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_every_pending_name_is_parsed_back(action: str, state: State) -> None:
    parsed = parse_instant(timeline_file_name(T, action, state), 1)

    assert parsed is not None
    assert (parsed.requested_time, parsed.action, parsed.state) == (T, action, state)


@pytest.mark.parametrize(
    ("planned", "completed"), [("compaction", "commit"), ("logcompaction", "deltacommit"), ("clean", "clean")]
)
def test_plans_complete_under_the_name_of_what_they_wrote(planned: str, completed: str) -> None:
    assert timeline_file_name(T, planned, State.COMPLETED) == f"{T}.{completed}"


@pytest.mark.parametrize(("time", "action"), [(T, "upsert"), ("../../x", "commit"), ("2024", "commit")])
def test_names_that_no_reader_would_find_are_not_made(time: str, action: str) -> None:
    with pytest.raises(TimelineError, match="names no instant"):
        timeline_file_name(time, action, State.COMPLETED)


def test_instants_sort_by_time_as_text() -> None:
    names = [f"{T}.commit", "20240418173213.commit", "00000000000000010.commit", "00000000000000009.commit"]
    parsed = sorted(instant for name in names if (instant := parse_instant(name, 1)))

    assert [instant.file_name for instant in parsed] == list(reversed(names))

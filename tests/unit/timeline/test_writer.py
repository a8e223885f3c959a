"""An instant goes from requested to completed, each step once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hudi_engine.errors import TimelineError, WriteConflictError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.active import check_inflight
from hudi_engine.format.timeline.instant import State
from hudi_engine.format.timeline.writer import TimelineWriter

T = "20240101000000000"


@pytest.fixture
def writer(storage: LocalStorage, config_of: Callable[..., TableConfig]) -> TimelineWriter:
    return TimelineWriter(storage, config_of())


@pytest.mark.parametrize(
    ("action", "names"),
    [
        ("commit", [f"{T}.commit", f"{T}.commit.requested", f"{T}.inflight"]),
        ("deltacommit", [f"{T}.deltacommit", f"{T}.deltacommit.inflight", f"{T}.deltacommit.requested"]),
        ("compaction", [f"{T}.commit", f"{T}.compaction.inflight", f"{T}.compaction.requested"]),
    ],
)
def test_all_three_files_of_an_instant_stay(
    writer: TimelineWriter, tmp_path: Path, action: str, names: list[str]
) -> None:
    writer.create_requested(T, action)
    writer.to_inflight(T, action, b"plan")
    writer.complete(T, action, b"done")

    assert sorted(os.listdir(tmp_path / ".hoodie")) == names
    assert (tmp_path / ".hoodie" / names[0]).read_bytes() == b"done"


def test_a_savepoint_begins_in_flight(writer: TimelineWriter, tmp_path: Path) -> None:
    writer.to_inflight(T, "savepoint")
    writer.complete(T, "savepoint", b"")

    assert sorted(os.listdir(tmp_path / ".hoodie")) == [f"{T}.savepoint", f"{T}.savepoint.inflight"]


def test_no_step_can_be_left_out_or_taken_twice(writer: TimelineWriter) -> None:
    with pytest.raises(TimelineError, match="cannot be started: it is not requested"):
        writer.to_inflight(T, "commit")
    writer.create_requested(T, "commit")
    with pytest.raises(TimelineError, match="is requested already"):
        writer.create_requested(T, "commit")
    with pytest.raises(TimelineError, match="cannot be completed: it is not inflight"):
        writer.complete(T, "commit", b"")
    writer.to_inflight(T, "commit")
    writer.complete(T, "commit", b"mine")
    with pytest.raises(TimelineError, match="is completed already"):
        writer.complete(T, "commit", b"other")


def test_removing_an_instant_takes_the_completed_file_first(
    storage: LocalStorage, config_of: Callable[..., TableConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    monkeypatch.setattr(storage, "delete", lambda path: order.append(path) or True)

    TimelineWriter(storage, config_of()).delete(T, "commit")
    TimelineWriter(storage, config_of()).delete(T, "compaction", State.REQUESTED, State.INFLIGHT)

    assert order == [
        f".hoodie/{T}.commit",
        f".hoodie/{T}.inflight",
        f".hoodie/{T}.commit.requested",
        f".hoodie/{T}.compaction.inflight",
        f".hoodie/{T}.compaction.requested",
    ]


def test_completed_file_of_layout_2_has_a_time_later_than_all_others(
    storage: LocalStorage, config_of: Callable[..., TableConfig]
) -> None:
    config = config_of(9)
    writer, ahead = TimelineWriter(storage, config), "29990101000000000"
    storage.create(f".hoodie/timeline/{T}_{ahead}.commit", b"")
    mine = "20240101000000001"
    writer.create_requested(mine, "compaction")
    writer.to_inflight(mine, "compaction")

    done = writer.complete(mine, "compaction", b"body")

    assert (done.action, done.completion_time) == ("commit", "29990101000000001")
    assert storage.read(f".hoodie/timeline/{mine}_29990101000000001.commit") == b"body"
    assert writer.completed_path(mine, "compaction") == f".hoodie/timeline/{done.file_name}"
    with pytest.raises(TimelineError, match="is completed already"):
        writer.complete(mine, "compaction", b"again")
    with pytest.raises(WriteConflictError, match="committed already"):
        check_inflight(storage, config, mine, "compaction")
    assert writer.delete_completed(mine, "compaction") and not writer.delete_completed(mine, "compaction")


def test_a_task_may_publish_only_while_its_instant_is_in_flight(
    writer: TimelineWriter, storage: LocalStorage, config_of: Callable[..., TableConfig]
) -> None:
    writer.create_requested(T, "commit")
    with pytest.raises(WriteConflictError, match="rolled back"):
        check_inflight(storage, config_of(), T, "commit")

    writer.to_inflight(T, "commit")
    check_inflight(storage, config_of(), T, "commit")

    writer.complete(T, "commit", b"")
    with pytest.raises(WriteConflictError, match="committed already"):
        check_inflight(storage, config_of(), T, "commit")

"""The archived timeline of layout 2: files that a manifest names, merged level by level."""

from __future__ import annotations

import json

from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.archived import ArchivedTimeline, archived_completion_times
from hudi_engine.format.timeline.commit_metadata import CommitMetadata
from hudi_engine.format.timeline.history import ArchivedInstant, History

FOLDER = ".hoodie/timeline/history"


def instant(number: int, action: str = "commit") -> ArchivedInstant:
    return ArchivedInstant(time(number), time(number, 5), action, b"body", None)


def time(number: int, later: int = 0) -> str:
    return f"202401010000{number:02d}{later:03d}"


def test_added_instants_are_read_with_what_they_held(storage: LocalStorage, config_of) -> None:
    config = config_of(9)
    body = CommitMetadata({}, {"schema": "s"}, "UPSERT").to_bytes(config.table_version)
    History(storage, FOLDER).add([ArchivedInstant(time(2), time(2, 7), "deltacommit", body, None)])
    History(storage, FOLDER).add([ArchivedInstant(time(1), time(1, 7), "clean", b"", b"plan")])

    archived = ArchivedTimeline.load(storage, config)

    assert [(each.requested_time, each.action) for each in archived.instants] == [
        (time(1), "clean"),
        (time(2), "deltacommit"),
    ]
    assert archived.commit_metadata(archived.completed_writes[0]).schema_json == "s"
    assert archived_completion_times(storage, config) == {time(1): time(1, 7), time(2): time(2, 7)}
    assert [row.plan for row in History(storage, FOLDER).rows()] == [b"plan", None]


def test_file_without_a_manifest_is_not_read(storage: LocalStorage, config_of) -> None:
    history = History(storage, FOLDER)
    history.add([instant(1)])
    storage.create(f"{FOLDER}/{time(2)}_{time(2)}_0.parquet", b"torn")
    storage.create(f"{FOLDER}/manifest_2", b"torn")

    assert History(storage, FOLDER).instants_since() == {(time(1), "commit")}
    History(storage, FOLDER).add([instant(2)])
    assert History(storage, FOLDER).instants_since() == {(time(1), "commit"), (time(2), "commit")}


def test_ten_files_of_a_level_become_one_of_the_next(storage: LocalStorage, config_of) -> None:
    for number in range(1, 10):
        History(storage, FOLDER).add([instant(number)])
        assert History(storage, FOLDER).merge_full_levels() == 0
    History(storage, FOLDER).add([instant(10), instant(11, "clean")])

    assert History(storage, FOLDER).merge_full_levels() == 10

    manifest = json.loads(storage.read(f"{FOLDER}/manifest_11"))
    assert [each["fileName"] for each in manifest["files"]] == [f"{time(1)}_{time(11)}_1.parquet"]
    assert storage.read(f"{FOLDER}/_version_") == b"11"
    assert len(ArchivedTimeline.load(storage, config_of(9)).instants) == 11
    names = {status.name for status in storage.list(FOLDER)}
    assert {name for name in names if name.startswith("manifest")} == {
        "manifest_9",
        "manifest_10",
        "manifest_11",
    }


def test_known_instants_are_those_of_files_that_reach_so_far(storage: LocalStorage) -> None:
    for number in (1, 2, 3):
        History(storage, FOLDER).add([instant(number)])

    assert History(storage, FOLDER).instants_since(time(2)) == {(time(2), "commit"), (time(3), "commit")}

"""Instants that left the active timeline, in both layouts."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine.errors import CorruptTableError, TimelineError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.archive_files import ARCHIVED_META_ENTRY, encode_archive_block
from hudi_engine.format.timeline.archived import ArchivedTimeline
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat

MakeConfig = Callable[..., TableConfig]


def at(number: int) -> str:
    return f"202401010000{number:02d}000"


def entry(time: str, action: str, state: str, operation: str | None = None) -> dict[str, Any]:
    body = None if operation is None else {"operationType": operation}
    return {"commitTime": time, "actionType": action, "actionState": state, "hoodieCommitMetadata": body}


def block(*entries: dict[str, Any]) -> bytes:
    """One block of the archive log."""
    return encode_archive_block(entries)


def history(*rows: tuple[int, int, str], metadata: bytes = b"") -> bytes:
    """A Parquet file of the layout 2 archive with rows (requested, completed, action)."""
    table = pa.table(
        {
            "instantTime": [at(row[0]) for row in rows],
            "completionTime": [at(row[1]) for row in rows],
            "action": [row[2] for row in rows],
            "metadata": pa.array([metadata for _ in rows], pa.binary()),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def publish(storage: LocalStorage, version: int, **files: bytes) -> None:
    folder = ".hoodie/timeline/history"
    for name, data in files.items():
        storage.replace(f"{folder}/{name}", data)
    manifest = {"files": [{"fileName": name, "fileLen": len(data)} for name, data in files.items()]}
    storage.replace(f"{folder}/manifest_{version}", json.dumps(manifest).encode())
    storage.replace(f"{folder}/_version_", str(version).encode())


@pytest.mark.parametrize("version", [6, 9])
def test_a_table_that_never_archived_has_an_empty_archive(
    storage: LocalStorage, config_of: MakeConfig, version: int
) -> None:
    assert ArchivedTimeline.load(storage, config_of(version)).instants == ()


def test_archive_logs_are_read_in_numeric_order_and_states_collapse(
    storage: LocalStorage, config_of: MakeConfig
) -> None:
    folder = ".hoodie/old"
    storage.create(
        f"{folder}/.commits_.archive.2_1-0-1",
        block(entry(at(1), "commit", "REQUESTED"), entry(at(1), "commit", "INFLIGHT"))
        + block(entry(at(1), "commit", "COMPLETED", "UPSERT"), entry(at(2), "clean", "COMPLETED")),
    )
    storage.create(
        f"{folder}/.commits_.archive.10_1-0-1", block(entry(at(3), "deltacommit", "COMPLETED", "INSERT"))
    )
    storage.create(f"{folder}/.DS_Store", b"junk")

    archive = ArchivedTimeline.load(storage, config_of(**{"hoodie.archivelog.folder": "old"}))

    assert [
        (instant.requested_time, instant.action, instant.is_completed) for instant in archive.instants
    ] == [
        (at(1), "commit", True),
        (at(2), "clean", True),
        (at(3), "deltacommit", True),
    ]
    assert [archive.commit_metadata(archive.instants[place]).operation_type for place in (0, 2)] == [
        "UPSERT",
        "INSERT",
    ]
    with pytest.raises(TimelineError, match="no commit metadata of clean"):
        archive.commit_metadata(archive.instants[1])


def test_columns_are_those_of_the_newest_write_that_says_them(
    storage: LocalStorage, config_of: MakeConfig
) -> None:
    writes = [entry(at(number), "commit", "COMPLETED", "UPSERT") for number in (1, 2)]
    for number, each in enumerate(writes, 1):
        each["hoodieCommitMetadata"]["extraMetadata"] = {"schema": f"of {number}"}
    writes.append(entry(at(3), "commit", "COMPLETED"))
    storage.create(".hoodie/archived/.commits_.archive.1_1-0-1", block(*writes))

    storage.create(f".hoodie/{at(4)}.commit", CommitMetadata().to_json())

    timeline = Timeline.load(storage, config_of())

    found = [timeline.table_schema_json(at(number)) for number in (0, 1, 2, 3)]
    assert found == [None, "of 1", "of 2", "of 2"], "the third was archived without what it wrote"
    assert timeline.table_schema_json() == "of 2"


def test_columns_of_a_service_do_not_hide_those_of_an_archived_write(
    storage: LocalStorage, config_of: MakeConfig
) -> None:
    write = entry(at(2), "commit", "COMPLETED", "UPSERT")
    write["hoodieCommitMetadata"]["extraMetadata"] = {"schema": "archived"}
    storage.create(".hoodie/archived/.commits_.archive.1_1-0-1", block(write))
    told = CommitMetadata({}, {"schema": "of a service"}, "CLUSTER")
    storage.create(f".hoodie/{at(4)}.replacecommit", told.to_json())
    assert Timeline.load(storage, config_of()).table_schema_json() == "archived"

    for name in (f"{at(1)}.commit", f"{at(1)}.savepoint"):
        storage.create(f".hoodie/{name}", CommitMetadata({}, {"schema": "saved"}, "INSERT").to_json())
    timeline = Timeline.load(storage, config_of())
    assert timeline.table_schema_json() == "archived", "the saved write began before the archived one"
    assert timeline.table_schema_json(at(1)) == "saved"


def test_a_block_cut_short_while_it_was_appended_is_skipped(
    storage: LocalStorage, config_of: MakeConfig
) -> None:
    whole, lost = block(entry(at(1), "commit", "COMPLETED")), block(entry(at(2), "commit", "COMPLETED"))
    storage.create(".hoodie/archived/.commits_.archive.1_1-0-1", whole + lost[:-20] + whole)

    archive = ArchivedTimeline.load(storage, config_of())

    assert [instant.requested_time for instant in archive.instants] == [at(1)]


def test_a_whole_block_with_nonsense_inside_is_corrupt(storage: LocalStorage, config_of: MakeConfig) -> None:
    damaged = block(entry(at(1), "commit", "COMPLETED")).replace(b'"type":"record"', b'"type":"rec\x00rd"')
    storage.create(".hoodie/archived/.commits_.archive.1_1-0-1", damaged)

    with pytest.raises(CorruptTableError, match=r"\.commits_\.archive\.1_1-0-1: the block at byte 0"):
        ArchivedTimeline.load(storage, config_of())


def test_only_files_of_the_current_manifest_count(storage: LocalStorage, config_of: MakeConfig) -> None:
    publish(storage, 1, gone=history((1, 2, "commit")))
    publish(
        storage,
        2,
        here=history((3, 4, "deltacommit"), metadata=CommitMetadata(operation_type="INSERT").to_json()),
    )

    archive = ArchivedTimeline.load(storage, config_of(9))

    (only,) = archive.instants
    assert (only.requested_time, only.completion_time, only.action) == (at(3), at(4), "deltacommit")
    assert archive.commit_metadata(only).operation_type == "INSERT"


def test_a_broken_manifest_is_corrupt(storage: LocalStorage, config_of: MakeConfig) -> None:
    publish(storage, 1, a=history((1, 2, "commit")))
    storage.replace(".hoodie/timeline/history/manifest_1", b"{")

    with pytest.raises(CorruptTableError, match="manifest of the archived timeline"):
        ArchivedTimeline.load(storage, config_of(9))


@pytest.mark.parametrize("said", [None, b"", b"1x", b"\xff"])
def test_while_the_version_file_is_replaced_the_newest_manifest_counts(
    storage: LocalStorage, config_of: MakeConfig, said: bytes | None
) -> None:
    for version in (2, 9, 10):
        publish(storage, version, **{f"f{version}": history((version, version + 1, "commit"))})
    storage.create(".hoodie/timeline/history/manifest_11.tmp", b"{")
    storage.delete(".hoodie/timeline/history/_version_")
    if said is not None:
        storage.create(".hoodie/timeline/history/_version_", said)

    archive = ArchivedTimeline.load(storage, config_of(9))

    assert [instant.requested_time for instant in archive.instants] == [at(10)]


def test_a_manifest_that_was_taken_away_meanwhile_is_looked_for_once_more(
    storage: LocalStorage, config_of: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(storage, 1, a=history((1, 2, "commit")))
    storage.delete(".hoodie/timeline/history/manifest_1")
    with pytest.raises(CorruptTableError, match="manifest_1, the current manifest"):
        ArchivedTimeline.load(storage, config_of(9))

    read = LocalStorage.read

    def read_beside_another(self: LocalStorage, path: str) -> bytes:
        if path.endswith("manifest_1"):
            publish(self, 2, a=history((1, 2, "commit")))
        return read(self, path)

    monkeypatch.setattr(LocalStorage, "read", read_beside_another)
    assert len(ArchivedTimeline.load(storage, config_of(9)).instants) == 1


def test_completion_times_of_archived_writes_come_from_the_archive(
    storage: LocalStorage, config_of: MakeConfig
) -> None:
    publish(storage, 1, a=history((1, 3, "deltacommit")))
    storage.create(f".hoodie/timeline/{at(5)}_{at(6)}.commit", CommitMetadata().to_json())

    timeline = Timeline.load(storage, config_of(9))

    assert [timeline.completion_time(at(number)) for number in (1, 2, 5)] == [at(3), at(2), at(6)]


def test_an_archived_commit_keeps_what_it_wrote(storage: LocalStorage, config_of: MakeConfig) -> None:
    stat = WriteStat(file_id="f", path="p/f_0-1-2_1.parquet", num_writes=3, partition_path="p")
    body = CommitMetadata({"p": [stat]}, {"schema": "{}"}, "INSERT_OVERWRITE", False, {"p": ["old"]})
    archived = entry(at(1), "replacecommit", "COMPLETED") | {
        "hoodieReplaceCommitMetadata": json.loads(body.to_json())
    }
    storage.create(".hoodie/archived/.commits_.archive.1_1-0-1", block(archived))

    archive = ArchivedTimeline.load(storage, config_of())

    found = archive.commit_metadata(archive.instants[0])
    assert (found.operation_type, found.schema_json) == ("INSERT_OVERWRITE", "{}")
    assert found.partition_to_replace_file_ids == {"p": ["old"]}
    assert [(partition, each.path, each.num_writes) for partition, each in found.write_stats()] == [
        ("p", "p/f_0-1-2_1.parquet", 3)
    ]


def test_every_string_of_an_entry_is_a_java_string() -> None:
    text = json.dumps(ARCHIVED_META_ENTRY)

    strings = re.findall(r'(\{"type": )?"string"(, "avro.java.string": "String")?', text)
    assert len(strings) > 50
    assert all(opened and marked for opened, marked in strings)

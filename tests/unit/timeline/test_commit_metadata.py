"""Commit metadata in the JSON of version 6 and the Avro of versions 8 and 9."""

from __future__ import annotations

import json

import fastavro
import pytest
from hudi_engine.errors import CorruptTableError
from hudi_engine.format.timeline.avro_file import encode_avro_file
from hudi_engine.format.timeline.commit_metadata import CommitMetadata, WriteStat

STAT_KEYS = (
    "fileId path cdcStats prevCommit numWrites numDeletes numUpdateWrites numInserts totalWriteBytes "
    "totalWriteErrors tempPath partitionPath totalLogRecords totalLogFilesCompacted totalLogSizeCompacted "
    "totalUpdatedRecordsCompacted totalLogBlocks totalCorruptLogBlock totalRollbackBlocks fileSizeInBytes "
    "minEventTime maxEventTime runtimeStats"
).split()


def test_a_base_file_stat_has_hudis_keys_in_hudis_order() -> None:
    stat = WriteStat(file_id="f-0", path="dt=1/f-0_0-0-0_1.parquet", partition_path="dt=1", num_writes=3)

    raw = stat.to_dict()

    assert list(raw) == STAT_KEYS
    assert (raw["prevCommit"], raw["numWrites"], raw["cdcStats"]) == ("null", 3, None)
    assert stat.is_log_file is False


def test_a_log_file_stat_names_its_slice_too() -> None:
    stat = WriteStat(
        file_id="f-0", path=".f-0_1.log.2_0-0-0", log_version=2, log_offset=0, base_file="", log_files=["a"]
    )

    raw = stat.to_dict()

    assert list(raw)[len(STAT_KEYS) :] == ["logVersion", "logOffset", "baseFile", "logFiles"]
    assert stat.is_log_file is True


def test_json_of_other_writers_survives_reading_and_writing() -> None:
    raw = {
        "partitionToWriteStats": {
            "": [
                dict.fromkeys(STAT_KEYS)
                | {"fileId": "f", "prevCommit": "null", "runtimeStats": {"totalScanTime": 0}}
                | {
                    "numUpdates": 2,
                    "prevBaseFile": None,
                    "recordsStats": {"val": None},
                    "someday": [1, {"x": "ü"}],
                }
            ]
        },
        "compacted": True,
        "extraMetadata": {"schema": '{"type":"record"}', "checkpoint": "5"},
        "operationType": "COMPACT",
        "partitionToReplaceFileIds": {"": ["g"]},
    }

    metadata = CommitMetadata.from_bytes(json.dumps(raw).encode())

    assert json.loads(metadata.to_json()) == raw
    assert metadata.schema_json == '{"type":"record"}'
    assert [(partition, stat.file_id) for partition, stat in metadata.write_stats()] == [("", "f")]


def test_replaced_file_groups_are_written_by_replacecommits_only() -> None:
    assert "partitionToReplaceFileIds" not in json.loads(CommitMetadata().to_json())
    replaced = CommitMetadata(partition_to_replace_file_ids={"dt=1": ["f"]})
    assert list(json.loads(replaced.to_json()))[-1] == "partitionToReplaceFileIds"


def test_avro_metadata_of_newer_tables_is_read() -> None:
    stat = {"type": "record", "name": "S", "fields": [
        {"name": "fileId", "type": ["null", "string"]},
        {"name": "numWrites", "type": ["null", "long"]},
        {"name": "totalLogFiles", "type": ["null", "long"]},
    ]}  # fmt: skip
    schema = fastavro.parse_schema({"type": "record", "name": "M", "fields": [
        {"name": "partitionToWriteStats", "type": ["null", {"type": "map", "values": {"type": "array",
        "items": stat}}]}, {"name": "compacted", "type": ["null", "boolean"]},
        {"name": "extraMetadata", "type": ["null", {"type": "map", "values": "string"}]},
        {"name": "operationType", "type": ["null", "string"]},
        {"name": "partitionToReplaceFileIds", "type": ["null", {"type": "map", "values": {"type": "array",
        "items": "string"}}]},
    ]})  # fmt: skip
    record = {
        "partitionToWriteStats": {"dt=1": [{"fileId": "f", "numWrites": 7, "totalLogFiles": 2}]},
        "compacted": None,
        "extraMetadata": {"schema": "{}"},
        "operationType": "INSERT_OVERWRITE",
        "partitionToReplaceFileIds": {"dt=1": ["old"]},
    }

    metadata = CommitMetadata.from_bytes(encode_avro_file(schema, record))

    (only,) = metadata.partition_to_write_stats["dt=1"]
    assert (only.file_id, only.num_writes, only.total_log_files, only.path) == ("f", 7, 2, None)
    assert (metadata.compacted, metadata.operation_type) == (False, "INSERT_OVERWRITE")
    assert metadata.partition_to_replace_file_ids == {"dt=1": ["old"]}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"partitionToWriteStats": ',
        b"[]",
        b"Obj\x01\x02",
        b'{"partitionToWriteStats": {"": [1]}}',
    ],
)
def test_a_truncated_or_foreign_file_is_corrupt_and_named(data: bytes) -> None:
    with pytest.raises(CorruptTableError, match=r"/t/\.hoodie/1\.commit"):
        CommitMetadata.from_bytes(data, "/t/.hoodie/1.commit")

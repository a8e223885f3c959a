"""Plans and metadata as Avro container files with one record."""

from __future__ import annotations

import io

import fastavro
import pytest
from hudi_engine.errors import CorruptTableError
from hudi_engine.format.timeline import schemas
from hudi_engine.format.timeline.avro_file import decode_avro_file, encode_avro_file

INFO = {"commitTime": "1", "action": "commit"}


def test_a_rollback_plan_survives_writing_and_reading() -> None:
    request = {
        "partitionPath": "dt=1",
        "fileId": "",
        "latestBaseInstant": "",
        "filesToBeDeleted": ["/t/dt=1/f.parquet"],
        "logBlocksToBeDeleted": {"file:/t/dt=1/.f.log.1": 11828},
    }
    plan = {"instantToRollback": INFO, "RollbackRequests": [request], "version": 1}

    assert decode_avro_file(encode_avro_file(schemas.ROLLBACK_PLAN, plan)) == plan


def test_fields_left_out_take_hudis_defaults() -> None:
    assert decode_avro_file(encode_avro_file(schemas.COMPACTION_PLAN, {})) == {
        "operations": None,
        "extraMetadata": None,
        "version": 1,
        "strategy": None,
        "preserveHoodieMetadata": False,
        "missingSchedulePartitions": None,
    }
    assert decode_avro_file(encode_avro_file(schemas.RESTORE_PLAN, {}))["version"] == 2


def test_a_restore_holds_the_rollbacks_it_did() -> None:
    rollback = {
        "startRollbackTime": "3",
        "timeTakenInMillis": 5,
        "totalFilesDeleted": 1,
        "commitsRollback": ["2"],
        "partitionMetadata": {
            "": {
                "partitionPath": "",
                "successDeleteFiles": ["f"],
                "failedDeleteFiles": [],
                "rollbackLogFiles": None,
                "logFilesFromFailedCommit": None,
            }
        },
        "version": 1,
        "instantsRollback": [INFO],
    }
    restore = {
        "startRestoreTime": "3",
        "timeTakenInMillis": 6,
        "instantsToRollback": ["2"],
        "hoodieRestoreMetadata": {"2": [rollback]},
        "version": 1,
        "restoreInstantInfo": [INFO],
    }

    assert decode_avro_file(encode_avro_file(schemas.RESTORE_METADATA, restore)) == restore


def test_a_file_with_several_records_is_no_timeline_file() -> None:
    sink = io.BytesIO()
    schema = fastavro.parse_schema({"type": "record", "name": "R", "fields": []})
    fastavro.writer(sink, schema, [{}, {}])

    with pytest.raises(CorruptTableError, match=r"1\.clean holds 2 records"):
        decode_avro_file(sink.getvalue(), "1.clean")


@pytest.mark.parametrize("cut", [0, 3, 20, -1, -20])
def test_a_truncated_file_is_corrupt_and_named(cut: int) -> None:
    whole = encode_avro_file(schemas.ROLLBACK_PLAN, {"instantToRollback": INFO})

    with pytest.raises(CorruptTableError, match=r"1\.rollback\.requested"):
        decode_avro_file(whole[:cut] if cut else b"", "1.rollback.requested")

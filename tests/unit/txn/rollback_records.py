"""What tests of rollbacks look at and put in the way of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hudi_engine.errors import TimelineError
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.avro_file import decode_avro_file, encode_avro_file
from hudi_engine.format.timeline.instant import State
from hudi_engine.format.timeline.schemas import ROLLBACK_PLAN
from hudi_engine.table.txn.owner import Liveness
from hudi_engine.table.txn.publication import UNPUBLISHED
from hudi_engine.table.txn.rollback import resume_rollbacks

import tests.faults.mini_table as mini

LATER = "20991231235959000"


def timeline(storage: LocalStorage) -> mini.Timeline:
    return mini.Timeline.load(storage, mini.TableConfig.load(storage))


def files(storage: LocalStorage) -> set[str]:
    return {status.path for status in storage.list("", recursive=True) if not status.is_dir}


def rollback_records(storage: LocalStorage) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plan and metadata of the newest rollback."""
    done = [instant for instant in timeline(storage).completed if instant.action == "rollback"][-1]
    return tuple(  # type: ignore[return-value]
        decode_avro_file(storage.read(mini.timeline_path(done.requested_time, "rollback", state)))
        for state in (State.REQUESTED, State.COMPLETED)
    )


def damage(storage: LocalStorage, instant: str) -> None:
    """Overwrite the completed file of a write."""
    (name,) = [each.file_name for each in timeline(storage).completed if each.requested_time == instant]
    (Path(storage.base) / ".hoodie" / name).write_bytes(b"junk\n")


def plan_for(storage: LocalStorage) -> dict[str, Any]:
    """The plan that would roll back the dead writer's files, as another machine would have stored it."""
    dead = timeline(storage).pending[0].requested_time
    written = sorted(path for path in files(storage) if path.endswith(f"_{dead}.parquet"))
    return {
        "instantToRollback": {"commitTime": dead, "action": "commit"},
        "RollbackRequests": [
            {
                "partitionPath": path.partition("/")[0],
                "fileId": "",
                "latestBaseInstant": "",
                "filesToBeDeleted": [f"/somewhere/else/{path}"],
                "logBlocksToBeDeleted": {},
            }
            for path in written
        ],
        "version": 1,
    }


def store_plan(storage: LocalStorage, plan: dict[str, Any], *, inflight: bool = True) -> None:
    body = encode_avro_file(ROLLBACK_PLAN, plan)
    storage.create(mini.timeline_path(LATER, "rollback", State.REQUESTED), body)
    if inflight:
        storage.create(mini.timeline_path(LATER, "rollback", State.INFLIGHT), b"")


def refusal(storage: LocalStorage, instant_time: str | None = None) -> str:
    """The message of a refused rollback, which must not have changed anything."""
    before = files(storage)
    with pytest.raises(TimelineError) as error:
        mini.rollback(storage, instant_time)
    assert files(storage) == before
    return str(error.value)


def resume(storage: LocalStorage) -> None:
    """Finish the rollbacks that were begun."""
    config = mini.TableConfig.load(storage)
    resume_rollbacks(
        storage,
        config,
        Timeline.load(storage, config),
        UNPUBLISHED,
        Liveness(storage, config, mini.options()),
    )

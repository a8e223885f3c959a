"""Names of the files of two writers: a store takes a large file without a condition, so no two writers may write one name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.format.filegroup.log_file import parse_log_file
from hudi_engine.format.schema.meta_fields import PARTITION_PATH
from hudi_engine.spark.read.collect import current_task
from hudi_engine.table.handles.write_task import WriteTask
from hudi_engine.table.write import driver_path

from tests.unit.handles.test_merge import NEW, a_task


def tokens_of_a_write(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """The tokens under which a small write on the driver is foreseen, and those under which it is done."""
    context = a_task(folder).context
    foreseen: list[str] = []
    written: list[str] = []

    def foresee(task: Any, *_: object) -> list[str]:
        foreseen.append(task.write_token)
        return [f"day/.f-{task.partition_id}_{NEW}.log.1_{task.write_token}.marker.APPEND"]

    def write(task: Any, *_: object) -> list[Any]:
        written.append(task.write_token)
        return []

    monkeypatch.setattr(driver_path, "tag_unit", lambda *_: None)
    monkeypatch.setattr(driver_path, "shares_of", lambda *_: ["one", "another"])
    monkeypatch.setattr(driver_path, "planned_markers", foresee)
    monkeypatch.setattr(driver_path, "write_unit", write)
    plan: Any = None
    batch = pa.table({PARTITION_PATH: ["day"]})
    assert driver_path.run_on_driver(context, plan, {}, batch, lambda _: None) == []
    return foreseen, sorted(written)


def test_two_writes_on_drivers_use_no_name_in_common_and_each_those_it_has_foreseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = [tokens_of_a_write(tmp_path / each, monkeypatch) for each in "ab"]
    for foreseen, written in writes:
        assert foreseen == written and len(set(written)) == 2
        for token in written:
            assert parse_log_file(f".f-0_{NEW}.log.1_{token}", "day") is not None
    (_, one), (_, other) = writes
    assert not {*one} & {*other}


def test_a_task_of_another_application_with_the_same_numbers_uses_other_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Running:
        """A first attempt at the first task of an application."""

        partitionId = stageId = taskAttemptId = staticmethod(lambda: 0)  # noqa: N815

    monkeypatch.setattr("pyspark.TaskContext.get", staticmethod(Running))
    context = a_task(tmp_path).context
    one, other = current_task(context), current_task(context)
    assert (one.partition_id, one.stage_id) == (0, 0)
    assert one.write_token != other.write_token


def test_a_task_whose_attempt_nobody_numbers_uses_names_of_its_own(tmp_path: Path) -> None:
    task = a_task(tmp_path)
    assert task.write_token != WriteTask(task.context).write_token

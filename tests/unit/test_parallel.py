"""Errors that workers meet come back as they were."""

from __future__ import annotations

import re
import sys
import threading
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.errors import (
    ConfigError,
    HistoryGapError,
    HudiError,
    InvalidKeyError,
    PathEscapeError,
    StorageError,
    TaskMemoryError,
)
from hudi_engine.format.parallel import (
    Failure,
    WorkerError,
    at_most,
    attempt,
    raise_worker_error,
    run_in_threads,
    typed_stage,
)

ERRORS = [
    ConfigError("two things", ("one", "two")),
    HistoryGapError("gone", "001", "005", "Begin anew"),
    InvalidKeyError("row 1 has no key: <a>, 'b'\nsecond line"),
    PathEscapeError("../x", "/t"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda each: type(each).__name__)
def test_an_error_comes_back_with_its_kind_text_and_attributes(error: HudiError) -> None:
    def fail(item: int) -> int:
        raise error

    failure = attempt(fail, 1)
    assert isinstance(failure, Failure)
    found = Failure.from_json(failure.to_json()).error()
    assert (type(found), str(found), vars(found)) == (type(error), str(error), vars(error))


@pytest.mark.parametrize("error", ERRORS, ids=lambda each: type(each).__name__)
def test_an_error_is_found_in_the_text_that_spark_makes_of_an_exception(error: HudiError) -> None:
    def fail(batches: object) -> list[int]:
        raise error

    with pytest.raises(WorkerError) as raised:
        list(typed_stage(fail)(iter([])))
    spark_text = RuntimeError(f"Job aborted: Traceback ...\nWorkerError: {raised.value}\n\n\tat Some.java")
    with pytest.raises(type(error)) as found:
        raise_worker_error(spark_text)
    assert (str(found.value), vars(found.value)) == (str(error), vars(error))


def test_another_exception_of_spark_is_left_alone() -> None:
    raise_worker_error(RuntimeError("hudi_engine.errors.DataError: only text"))


def test_an_error_of_the_storage_is_raised_so_that_the_task_is_tried_again() -> None:
    def fail(item: int) -> int:
        raise StorageError("disk")

    with pytest.raises(WorkerError) as raised:
        attempt(fail, 1)
    with pytest.raises(StorageError, match="^disk$"):
        raise_worker_error(raised.value)


@pytest.mark.parametrize(
    "lack", [MemoryError(), pa.ArrowMemoryError("malloc of size 134217728 failed")], ids=str
)
def test_a_lack_of_memory_is_told_with_what_to_set(lack: MemoryError) -> None:
    def fail(item: object) -> list[int]:
        raise lack

    failure = attempt(fail, 1)
    assert isinstance(failure, Failure)
    said = re.escape(str(lack) or "MemoryError")
    with pytest.raises(
        TaskMemoryError, match=rf"\({said}\).*spark\.executor\.pyspark\.memory.*Nothing was committed"
    ):
        raise failure.error()
    with pytest.raises(WorkerError) as raised:
        list(typed_stage(fail)(iter([])))
    with pytest.raises(TaskMemoryError, match="more memory than"):
        raise_worker_error(raised.value)


def test_a_key_that_is_no_text_is_told_as_it_is() -> None:
    def fail(item: object) -> list[Any]:
        return pa.array([b"caf\xe9"]).view(pa.string()).to_pylist()

    failure = attempt(fail, 1)
    assert isinstance(failure, Failure)
    with pytest.raises(InvalidKeyError, match=r"b'caf\\xe9' is not UTF-8 text.*nothing was committed"):
        raise failure.error()
    with pytest.raises(WorkerError, match=r"b'caf\\xe9' is not UTF-8 text"):
        list(typed_stage(fail)(iter([])))


@pytest.mark.parametrize(
    ("limit", "advice"),
    [
        (450, "900m at least for files of the default size; with so little nothing else helps"),
        (700, "900m at least for files of the default size, or let a task hold fewer rows"),
        (1024, "spark.executor.pyspark.memory, or let a task hold fewer rows"),
    ],
)
def test_a_lack_of_memory_below_what_any_write_needs_is_told_without_options_that_do_not_help(
    limit: int, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hudi_engine.format.parallel.memory_limit", lambda: limit * 2**20)

    def fail(item: object) -> None:
        raise MemoryError

    failure = attempt(fail, 1)
    assert isinstance(failure, Failure)
    assert advice in failure.message and ("max.bytes" in failure.message) is (limit > 600)


def test_a_worker_that_cannot_load_its_libraries_is_told_as_a_lack_of_memory() -> None:
    said = (
        "ImportError: /x/_compute.cpython-311-x86_64-linux-gnu.so: failed to map segment from shared object"
    )
    with pytest.raises(TaskMemoryError, match=r"spark\.executor\.pyspark\.memory must be 900m at least"):
        raise_worker_error(RuntimeError(f"Job aborted: Traceback ...\n{said}\n"))


def test_a_library_that_java_may_not_load_is_no_lack_of_memory() -> None:
    raise_worker_error(
        RuntimeError(
            "java.lang.UnsatisfiedLinkError: /tmp/libzstd-jni.so: failed to map segment from shared object"
        )
    )


def test_threads_give_results_in_the_order_of_the_items_and_raise_the_first_error() -> None:
    assert run_in_threads(lambda each: each * 2, list(range(20)), most=3) == list(range(0, 40, 2))
    with pytest.raises(ZeroDivisionError):
        run_in_threads(lambda each: 1 // each, [1, 0])


def test_threads_at_work_take_short_turns_and_others_get_theirs_back() -> None:
    before = sys.getswitchinterval()
    outer, inner = threading.Event(), threading.Event()

    def work(name: str) -> float:
        if name == "outer":
            outer.set()
            inner.wait(10)
        return sys.getswitchinterval()

    def second() -> None:
        outer.wait(10)
        with pytest.raises(ZeroDivisionError):
            run_in_threads(lambda n: 1 // n, [1, 0])
        inner.set()

    beside = threading.Thread(target=second)
    beside.start()
    seen = run_in_threads(work, ["outer", "other"])
    beside.join()
    assert all(each <= 0.001 for each in seen)
    assert sys.getswitchinterval() == before


def test_a_turn_that_is_shorter_already_stays() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0001)
    try:
        assert max(run_in_threads(lambda _: sys.getswitchinterval(), [1, 2])) < 0.0002
        assert sys.getswitchinterval() < 0.0002
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize(("tasks", "started"), [(0, 7), (1, 1), (3, 3), (7, 7), (20, 7)])
def test_a_runner_starts_no_more_tasks_than_allowed(tasks: int, started: int) -> None:
    calls: list[int] = []

    def run(function: Any, items: Any) -> list[Any]:
        calls.append(len(items))
        return [function(each) for each in items]

    assert at_most(run, tasks)(lambda each: each * each, list(range(7))) == [n * n for n in range(7)]
    assert calls == [started]

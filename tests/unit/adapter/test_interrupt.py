"""What an interrupted dbt shows, and how SIGTERM ends it."""

from __future__ import annotations

import signal
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.hudi.spark import session

_PROGRAM = """
import signal, sys, time, traceback
from dbt.events.types import MainEncounteredError, MainStackTrace
from dbt_common.events.base_types import EventLevel
from dbt_common.events.functions import fire_event
from dbt_common.events.event_manager_client import add_logger_to_manager, cleanup_event_logger
from dbt_common.events.logger import LoggerConfig
from dbt.adapters.hudi.interrupt import end_in_order, show_no_stack

cleanup_event_logger()
add_logger_to_manager(LoggerConfig(name="stdout_log", level=EventLevel.INFO, output_stream=sys.stdout))
add_logger_to_manager(LoggerConfig(name="file_log", level=EventLevel.INFO, output_stream=sys.stderr))
sys.argv[0] = {program!r}
show_no_stack()
end_in_order()

def fail():
    raise ValueError("of another kind")

def ask_to_end():
    signal.raise_signal(signal.SIGTERM)
    time.sleep(9)

for work in (fail, ask_to_end):
    try:
        work()
    except BaseException as error:  # as dbt does
        fire_event(MainEncounteredError(exc=str(error)))
        fire_event(MainStackTrace(stack_trace=traceback.format_exc()))
"""


def ended(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(program=program)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        check=False,
    )


def test_an_interrupt_is_a_sentence_on_the_screen_and_a_stack_in_the_log(tmp_path: Path) -> None:
    found = ended(tmp_path, "/usr/bin/dbt")
    assert found.returncode == 0
    other, _, interrupt = found.stdout.rpartition("of another kind")
    assert "Traceback" in other, "other errors are told as ever"
    assert interrupt.strip().endswith(
        "Interrupted: a write that was under way is taken back, what was complete stays"
    )
    assert "Traceback" not in interrupt and "KeyboardInterrupt" in found.stderr


def test_a_program_that_only_uses_dbt_ends_by_sigterm_as_it_did(tmp_path: Path) -> None:
    assert ended(tmp_path, "/opt/scheduler").returncode == -signal.SIGTERM


def test_nobody_waits_for_spark_once_dbt_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "is_interrupted", lambda: True)
    with pytest.raises(DbtRuntimeError, match="interrupted while Spark was starting"):
        session._wait_for(Future())

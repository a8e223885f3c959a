"""An interrupted run: what the screen shows of it, and an end by SIGTERM that is as orderly as one by Ctrl-C."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dbt_common.events.event_manager_client import get_event_manager

# dbt's events about an error that it does not know, as an interrupt is one; its log file keeps the stack.
_ERROR, _STACK = "MainEncounteredError", "MainStackTrace"
_SCREEN = "stdout_log"
_MESSAGE = "Interrupted: a write that was under way is taken back, what was complete stays"
_PROGRAM = "dbt"
_ending = threading.Event()


class _WithoutStack:
    """A filter of dbt's events that shows a sentence in place of the stack of an interrupt."""

    def __init__(self, before: Callable[[Any], bool]) -> None:
        self._before = before

    def __call__(self, event: Any) -> bool:
        # dbt logs an error while it handles it
        if isinstance(sys.exc_info()[1], KeyboardInterrupt):
            if event.info.name == _STACK:
                return False
            if event.info.name == _ERROR:
                event.info.msg = _MESSAGE
        return self._before(event)


def show_no_stack() -> None:
    """Have dbt show a sentence on the screen when it is interrupted."""
    for each in getattr(get_event_manager(), "loggers", ()):
        if each.name == _SCREEN and not isinstance(each.filter, _WithoutStack):
            each.filter = _WithoutStack(each.filter)


def end_in_order() -> None:
    """Have a SIGTERM end dbt as Ctrl-C does, so that nothing is left for the next run to take back; a second one ends it at once.

    Only where dbt is the program, and no other code handles the signals.
    """
    _ending.clear()
    if Path(sys.argv[0]).stem != _PROGRAM or threading.current_thread() is not threading.main_thread():
        return
    for number, usual in ((signal.SIGTERM, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
        if signal.getsignal(number) is usual:
            signal.signal(number, _interrupt)


def is_interrupted() -> bool:
    """Whether dbt is to end, for threads that wait: only Python's first thread gets the signal."""
    return _ending.is_set()


def _interrupt(number: int, frame: object) -> None:  # noqa: ARG001
    _ending.set()
    if number == signal.SIGTERM:
        signal.signal(number, signal.SIG_DFL)
    raise KeyboardInterrupt

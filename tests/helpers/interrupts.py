"""Interrupts for programs that tests start."""

from __future__ import annotations

import signal


def take_interrupts() -> None:
    """Let a started program end at an interrupt, as its `preexec_fn`.

    A run of the tests in the background of a shell has interrupts ignored, and its children would too.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)

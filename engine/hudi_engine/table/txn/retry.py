"""Beginning again after a conflict."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from hudi_engine.errors import ConsumedMeanwhileError, PlannedMeanwhileError, WriteConflictError

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 5.0


def retried(write: Callable[[], Result], retries: int) -> Result:
    """Run a write, and again from the start after each conflict.

    Between two attempts is a pause that grows, with some chance in it, so that two writers do not meet again and again.

    Args:
        write: The whole write, from the begin of its instant on; a conflict leaves nothing of it visible.

    Raises:
        WriteConflictError: when the last attempt was overtaken too.
        ConsumedMeanwhileError: when what is written is to be rebuilt.
        PlannedMeanwhileError: when it waits for a clustering that no process runs.
    """
    pause = _FIRST_PAUSE_S
    for left in range(retries, 0, -1):
        try:
            return write()
        except (ConsumedMeanwhileError, PlannedMeanwhileError):
            raise
        except WriteConflictError as conflict:
            logger.warning("beginning again after a conflict, %d attempt(s) left: %s", left, conflict)
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
            pause = min(pause * 2, _LONGEST_PAUSE_S)
    return write()

"""Rebuilt tables that are on the way to their places while a session is filled."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from hudi_engine.errors import HudiError, WriteConflictError

logger = logging.getLogger(__name__)

_WAIT_S = 60.0
_PAUSE_S = 0.5


def settle_rebuilds(
    recover: Callable[[str], None], places: Mapping[str, str], warnings: list[str], wait_s: float = _WAIT_S
) -> None:
    """Finish the rebuilds that were cut off, and wait for those of which another process moves the table, file by file.

    Names lead to the place of a table alone, so one that is not there yet would not be shown for as long as the session lives.

    Args:
        recover: Finishes the rebuild of the table at a base path; raises WriteConflictError while another process does.
        places: Base paths of tables by their names.
        warnings: Gets what could not be settled.
        wait_s: Seconds to wait at most.
    """
    deadline = time.monotonic() + wait_s
    left, waits = dict(places), False
    while True:
        moving: dict[str, WriteConflictError] = {}
        for label, base in left.items():
            try:
                recover(base)
            except WriteConflictError as error:
                moving[label] = error
            except (HudiError, OSError) as error:
                warnings.append(f"the rebuild of {label} was not tidied up: {error}")
        if moving and time.monotonic() < deadline:
            if not waits:
                logger.warning("waiting for the rebuilt %s, for at most %d s", ", ".join(moving), wait_s)
            waits = True
            left = {label: places[label] for label in moving}
            time.sleep(_PAUSE_S)
            continue
        warnings.extend(f"{label} was not registered: {error}" for label, error in moving.items())
        return

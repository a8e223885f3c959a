"""The end of a process that has run dbt: at once, as nothing that it holds is worth freeing."""

import atexit
import gc
import sys

# A library that counts at the end what is left of it, and complains of that on the screen.
_COUNTS_WHAT_IS_LEFT = "duckdb"


def end_at_once() -> None:
    """Have Python leave out its last search for objects that hold each other, when the process ends.

    With dbt's manifest and classes in memory that search takes more than half a second of every command; the memory goes
    back with the process either way.
    """
    atexit.register(_leave_all)


def _leave_all() -> None:
    if _COUNTS_WHAT_IS_LEFT not in sys.modules:
        gc.disable()
        gc.freeze()

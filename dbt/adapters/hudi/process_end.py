"""What Python need not look for in a process that runs dbt: objects that hold each other, among those that stay to the end."""

import atexit
import gc
import sys

# A library that counts at the end what is left of it, and complains of that on the screen.
_COUNTS_WHAT_IS_LEFT = "duckdb"


def freeze_loaded_objects() -> None:
    """Have Python's searches for objects that hold each other leave out what is there by now: dbt, with all its classes.

    A search among all of it takes a tenth of a second, and two or three fall into the time that a person waits for.
    """
    if _COUNTS_WHAT_IS_LEFT not in sys.modules:
        gc.freeze()


def skip_collection_at_exit() -> None:
    """Have Python leave out its last search for objects that hold each other, when the process ends.

    With dbt's manifest and classes in memory that search takes more than half a second of every command; the memory goes
    back with the process either way.
    """
    atexit.register(_leave_all)


def _leave_all() -> None:
    if _COUNTS_WHAT_IS_LEFT not in sys.modules:
        gc.disable()
        gc.freeze()

"""How a process that has loaded the adapter ends."""

import subprocess
import sys

import pytest

_PROGRAM = """
import atexit, gc
frozen = gc.get_freeze_count()  # Python 3.12 begins with some
atexit.register(lambda: print("searches:", gc.isenabled()))
import dbt.adapters.hudi, {library}
assert gc.isenabled() and gc.get_freeze_count() == frozen
"""


@pytest.mark.parametrize(("library", "searches"), [("pyspark", False), ("duckdb", True)])
def test_python_searches_for_garbage_at_the_end_only_where_a_library_counts_what_is_left(
    library: str, searches: bool
) -> None:
    pytest.importorskip(library)
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(library=library)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert (ended.stdout.strip(), ended.stderr) == (f"searches: {searches}", "")

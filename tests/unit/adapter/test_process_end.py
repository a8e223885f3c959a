"""How a process that has loaded the adapter ends."""

import subprocess
import sys

import pytest

_PROGRAM = """
import atexit, gc
atexit.register(lambda: print("searches:", gc.isenabled()))
import dbt.adapters.hudi.plugin, {library}
assert gc.isenabled()
class Held: pass
held, seen = Held(), []
held.itself, held.end = held, atexit
import weakref
weakref.finalize(held, seen.append, 1)
del held
gc.collect()
assert seen == [1], "what came after the adapter is searched as ever"
"""


@pytest.mark.parametrize(("first", "leaves"), [("pyspark", True), ("duckdb", False)])
def test_searches_leave_out_what_was_there_before_the_adapter_unless_a_library_counts_it(
    first: str, leaves: bool
) -> None:
    pytest.importorskip(first)
    # Python 3.12 begins with some
    program = f"import gc; n = gc.get_freeze_count(); import {first}, dbt.adapters.hudi.plugin; print(gc.get_freeze_count() > n)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert ended.stdout.strip() == str(leaves), ended.stderr


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

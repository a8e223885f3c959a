"""A worker settles once; each case runs in a process of its own, which it changes for good."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COLLECTS = """
import gc
from hudi_engine.format.worker import settle_worker
settle_worker()
settled = gc.get_freeze_count()
assert settled > len(gc.get_objects())
settle_worker()
assert gc.get_freeze_count() == settled, "once"
"""
LISTS_NO_ARCHIVES = """
import importlib, os, sys, zipfile, zipimport
from hudi_engine.format.worker import settle_worker

archives = [os.path.abspath(name) for name in ("pyspark.zip", "py4j-0.10.9.9-src.zip", "spark-core_2.13-4.1.1.jar", "mine.zip")]
for name in archives:
    zipfile.ZipFile(name, "w").close()
    sys.path_importer_cache[name] = zipimport.zipimporter(name)
settle_worker()
importlib.invalidate_caches()
for name in archives:
    with zipfile.ZipFile(name, "w") as archive:
        archive.writestr("later_" + os.path.basename(name)[:4] + ".py", "")
importlib.invalidate_caches()
seen = [name for name in archives if sys.path_importer_cache[name].find_spec("later_" + os.path.basename(name)[:4])]
assert seen == archives[3:], seen
"""
KEEPS = """
import resource
import numpy as np
import pyarrow as pa
from hudi_engine.format.worker import keep_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    columns = [pa.allocate_buffer(10_000_000) for _ in range(20)]
    for column in columns:
        np.frombuffer(column, np.uint8)[:] = 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

assert keep_memory() is KEPT
rounds = [faults() for _ in range(6)]
print(rounds[0], rounds[-1])
"""

HOLDS_LESS = """
import resource
import pyarrow as pa
from hudi_engine.format.worker import memory_limit, rows_at_once, settle_worker

assert memory_limit() is None and rows_at_once(10**9) == 10**9
resource.setrlimit(resource.RLIMIT_AS, (2**30, resource.RLIM_INFINITY))
settle_worker()
assert pa.default_memory_pool().backend_name == "system", "others reserve a gigabyte"
first = rows_at_once(10**9)
assert 2**24 < first < 2**28, first
assert rows_at_once(1000) == 1000
held = pa.allocate_buffer(2**28)
assert rows_at_once(10**9) <= first - 2**28 // 5 + 2**20, "what is taken is not there a second time"
resource.setrlimit(resource.RLIMIT_AS, (2**20, resource.RLIM_INFINITY))
assert rows_at_once(10**9) == 2**24
"""


def _run(code: str, folder: Path | None = None, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path))),
            **variables,
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_settled_worker_collects_what_comes_later_and_nothing_before():
    _run(COLLECTS)


def test_archives_of_spark_are_not_listed_anew_and_others_are(tmp_path):
    _run(LISTS_NO_ARCHIVES, folder=tmp_path)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the allocator of glibc")
def test_columns_that_are_freed_are_not_asked_of_the_system_again():
    first, later = map(int, _run(KEEPS.replace("KEPT", "True"), ARROW_DEFAULT_MEMORY_POOL="").split())
    assert later * 4 < first


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is Linux's")
def test_a_worker_with_a_limit_gives_its_memory_back():
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (2**40, resource.RLIM_INFINITY))\n"
    _run(limit + KEEPS.replace("KEPT", "False"), ARROW_DEFAULT_MEMORY_POOL="")


def test_an_allocator_that_the_user_names_stays():
    _run(KEEPS.replace("KEPT", "False"), ARROW_DEFAULT_MEMORY_POOL="system")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is Linux's")
def test_a_worker_with_a_limit_holds_a_share_of_what_is_left():
    _run(HOLDS_LESS, ARROW_DEFAULT_MEMORY_POOL="")

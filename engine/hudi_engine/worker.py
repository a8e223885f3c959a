"""What a Python worker of Spark settles once, when the first task of the engine begins in it."""

from __future__ import annotations

import gc
import os
import sys
from zipimport import zipimporter

_ARCHIVES_OF_SPARK = ("pyspark.zip", "py4j-", "spark-core_")
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's ``mallopt`` (malloc.h)."""
_LARGE = 32 * 1024 * 1024
"""The largest value that glibc takes as the size from which blocks are the system's own."""
_MOST = 2**31 - 1


def settle_worker() -> None:
    """Spare the tasks of a worker what each of them would do again, once the first has begun.

    What is loaded is left out of its garbage collections, one of which ends every task. The archives that Spark itself comes
    in, which never change, are not listed anew, which Python below 3.12 does whenever a task begins. And memory stays with
    the process.
    """
    if gc.get_freeze_count():
        return
    keep_memory()
    gc.freeze()
    for finder in sys.path_importer_cache.values():
        if isinstance(finder, zipimporter) and os.path.basename(finder.archive).startswith(
            _ARCHIVES_OF_SPARK
        ):
            finder.invalidate_caches = _nothing  # type: ignore[method-assign]


def keep_memory() -> bool:
    """Let the process keep what Arrow frees of smaller columns, for those that come next.

    What is given back to the system and asked for again is zeroed page by page, which took up to a sixth of the CPU seconds of
    loads and upserts. Large columns are given back: pieces between them would add to the most that a task takes at once.

    Returns:
        Whether it does so: only under glibc, not where the memory of workers is limited (``spark.executor.pyspark.memory``),
        and not where ``ARROW_DEFAULT_MEMORY_POOL`` names an allocator.
    """
    if os.environ.get("ARROW_DEFAULT_MEMORY_POOL") or not _has_glibc() or _has_limit():
        return False
    import ctypes

    import pyarrow as pa

    allocator = ctypes.CDLL(None)
    if not (allocator.mallopt(_M_MMAP_THRESHOLD, _LARGE) and allocator.mallopt(_M_TRIM_THRESHOLD, _MOST)):
        return False
    pa.set_memory_pool(pa.system_memory_pool())
    return True


def _has_limit() -> bool:
    import resource

    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def _has_glibc() -> bool:
    try:
        return bool(os.confstr("CS_GNU_LIBC_VERSION"))
    except (AttributeError, ValueError, OSError):
        return False


def _nothing() -> None:
    """Stand for a method that has nothing to do."""

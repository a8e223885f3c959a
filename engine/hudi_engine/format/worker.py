"""What a Python worker of Spark settles once, when the first task of the engine begins in it."""

from __future__ import annotations

import gc
import os
import sys
from zipimport import zipimporter

_ARCHIVES_OF_SPARK = ("pyspark.zip", "py4j-", "spark-core_")
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""Parameters of glibc's ``mallopt`` (malloc.h)."""
_LARGE = 32 * 1024 * 1024
"""The largest value that glibc takes as the size from which blocks are the system's own."""
_MOST = 2**31 - 1
_SMALL = 1024 * 1024
_SHARE = 5
"""Rows that a task holds are a fifth of what is free where memory is limited: keys, a sorted or encoded copy and what a
library reserves come on top."""
_LEAST = 16 * 1024 * 1024
LEAST_MEMORY = 900 * 2**20
"""Bytes of memory that a worker needs for files of the default size (docs/sizing.md)."""
_SETTLED: set[int] = set()
"""The process, once it has settled; to count what is left out of collections takes longer with all that was loaded."""


def settle_worker() -> None:
    """Spare the tasks of a worker what each of them would do again, once the first has begun.

    What is loaded is left out of its garbage collections, one of which ends every task. The archives that Spark itself comes
    in, which never change, are not listed again, which Python below 3.12 does whenever a task begins. And memory stays with
    the process.
    """
    if os.getpid() in _SETTLED:
        return
    _SETTLED.add(os.getpid())
    if memory_limit() is None:
        keep_memory()
    else:
        spare_memory()
    gc.freeze()
    for finder in sys.path_importer_cache.values():
        if isinstance(finder, zipimporter) and os.path.basename(finder.archive).startswith(
            _ARCHIVES_OF_SPARK
        ):
            finder.invalidate_caches = _nothing  # type: ignore[method-assign]


def keep_memory() -> bool:
    """Let the process keep what Arrow frees of smaller columns, for those that come next.

    What is given back to the system and requested again is zeroed page by page, which took up to a sixth of the CPU seconds of
    loads and upserts. Large columns are given back: pieces between them would add to the most that a task takes at once.

    Returns:
        Whether it does so: only under glibc, not where the memory of workers is limited (``spark.executor.pyspark.memory``),
        and not where ``ARROW_DEFAULT_MEMORY_POOL`` names an allocator.
    """
    if memory_limit() is not None:
        return False
    return _use_system_memory({_M_MMAP_THRESHOLD: _LARGE, _M_TRIM_THRESHOLD: _MOST})


def spare_memory() -> bool:
    """Let the process take no more of the system's memory than it uses, where ``spark.executor.pyspark.memory`` limits it.

    The limit counts what is reserved (``RLIMIT_AS``): Arrow's own allocators reserve a gigabyte at their first use, and glibc
    64 MiB for each thread that allocates.

    Returns:
        Whether it does so: only under glibc, and not where ``ARROW_DEFAULT_MEMORY_POOL`` names an allocator.
    """
    return _use_system_memory({_M_MMAP_THRESHOLD: _SMALL, _M_TRIM_THRESHOLD: _SMALL, _M_ARENA_MAX: 1})


def memory_limit() -> int | None:
    """Return the bytes of address space that the process may have, None when nothing limits them."""
    try:
        import resource
    except ImportError:
        return None  # Windows

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def rows_at_once(usual: int) -> int:
    """Return the bytes of rows that a task may hold at once.

    Returns:
        ``usual``, or a share of what is left to the process where its memory is limited (``spark.executor.pyspark.memory``),
        of which 16 MiB are always taken.
    """
    limit = memory_limit()
    if limit is None:
        return usual
    return min(usual, max(_LEAST, (limit - _reserved()) // _SHARE))


def _use_system_memory(settings: dict[int, int]) -> bool:
    if os.environ.get("ARROW_DEFAULT_MEMORY_POOL") or not _has_glibc():
        return False
    import ctypes

    import pyarrow as pa

    allocator = ctypes.CDLL(None)
    if not all(allocator.mallopt(name, value) for name, value in settings.items()):
        return False
    pa.set_memory_pool(pa.system_memory_pool())
    return True


def _reserved() -> int:
    """Return the bytes of address space that the process has taken; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as counts:
            return int(counts.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _has_glibc() -> bool:
    try:
        return bool(os.confstr("CS_GNU_LIBC_VERSION"))
    except (AttributeError, ValueError, OSError):
        return False


def _nothing() -> None:
    """Stand for a method that has nothing to do."""

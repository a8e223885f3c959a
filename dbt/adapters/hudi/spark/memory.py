"""How much memory the processes of Spark may take, against the memory there is, for ``dbt debug`` and the start of Spark."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from hudi_engine.format.worker import LEAST_MEMORY
from pyspark.sql import SparkSession

from dbt.adapters.hudi.logs import is_first, logger

MIB = 2**20
GIB = 2**30
WORKER_BYTES = GIB
"""What a Python worker takes at most with files of the default size (docs/sizing.md has figures)."""

_JAVA_BESIDE_HEAP = 0.25
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)b?", re.IGNORECASE)
_UNITS = {"": MIB, "k": 2**10, "m": MIB, "g": GIB, "t": 2**40}
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_MIN_OVERHEAD = 384 * MIB
_OVERHEAD = {"yarn": 0.1, "k8s": 0.4}
"""Part of an executor's memory that its container has besides Java's heap (Spark's defaults for Python programs)."""


def warn_of_memory(session: SparkSession) -> None:
    """Log a sentence for each setting by which a session may run out of memory."""
    context = session.sparkContext
    conf = dict(context.getConf().getAll())
    _warn(warnings_of(conf, str(context.master), context.defaultParallelism, machine_bytes()))


def warn_of_limit(conf: Mapping[str, str]) -> None:
    """Log a sentence when the settings of a session to be leave Python workers less than any write needs."""
    _warn(_limit_warnings(conf))


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        if is_first(warning):
            logger.warning("{}", warning)


def warnings_of(conf: Mapping[str, str], master: str, cores: int, machine: int | None) -> list[str]:
    """Return a sentence for each setting by which Spark may run out of memory.

    Args:
        cores: Tasks that run at once here, with a local master.
        machine: Bytes of memory that this machine or container has, None where it does not say.
    """
    found = _limit_warnings(conf)
    limit, sharing = _limit_of(conf)
    if master.startswith("local"):
        heap = _bytes(conf.get("spark.driver.memory", "")) or GIB
        java, worker = int(heap * (1 + _JAVA_BESIDE_HEAP)), limit // sharing or WORKER_BYTES
        if machine is not None and java + cores * worker > machine:
            fitting = (machine - java) // worker
            fewer = f"fewer cores (master: local[{fitting}]), " if fitting > 0 else ""
            found.append(
                f"Spark may take more memory than the {_text(machine)} there is: Java {_text(java)}, and {cores} Python "
                f"workers of up to {_text(worker)}. Take {fewer}a smaller spark.driver.memory, or smaller files "
                "(hoodie.parquet.max.file.size)"
            )
        return found
    kind = next((kind for kind in _OVERHEAD if master.startswith(kind)), None)
    if kind is not None and not limit:
        memory = _bytes(conf.get("spark.executor.memory", "")) or GIB
        given = _bytes(conf.get("spark.executor.memoryOverhead", ""))
        part = float(conf.get("spark.executor.memoryOverheadFactor") or _OVERHEAD[kind])
        overhead = given or max(_MIN_OVERHEAD, int(memory * part))
        if overhead < sharing * LEAST_MEMORY:
            found.append(
                f"Python workers of an executor take from its spark.executor.memoryOverhead, {_text(overhead)} here for "
                f"{sharing} of them; a container that takes more is killed. Give it {_text(sharing * WORKER_BYTES)}, or set "
                "spark.executor.pyspark.memory, which is added to it and keeps them below"
            )
    return found


def _limit_warnings(conf: Mapping[str, str]) -> list[str]:
    limit, sharing = _limit_of(conf)
    if not limit or limit // sharing >= LEAST_MEMORY:
        return []
    shared = f"shared by {sharing} workers of an executor, " if sharing > 1 else ""
    return [
        f"spark.executor.pyspark.memory is {_text(limit)}, {shared}of which libraries reserve about 350 MiB a worker; "
        f"set it to {LEAST_MEMORY * sharing // MIB}m at least"
    ]


def _limit_of(conf: Mapping[str, str]) -> tuple[int, int]:
    """Return the bytes that the Python workers of an executor may take, 0 for no limit, and how many share them."""
    sharing = int(conf.get("spark.executor.cores") or 1)
    return _bytes(conf.get("spark.executor.pyspark.memory", "")), sharing


def machine_bytes() -> int | None:
    """Return the memory of this machine, or of the container if that is less; None where the system does not say."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None
    for path in _CGROUP_LIMITS:
        try:
            text = Path(path).read_text("ascii").strip()
        except OSError:
            continue
        if text.isdigit():
            found = min(found, int(text))
    return found


def _bytes(text: str) -> int:
    """Read a size as Spark writes it, in MiB without a unit; 0 for none."""
    found = _SIZE.fullmatch(text.strip())
    return int(found[1]) * _UNITS[found[2].lower()] if found else 0


def _text(size: int) -> str:
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size // MIB} MiB"

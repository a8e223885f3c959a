"""Which slices a compaction takes, and in which order (Hudi's compaction strategies).

A strategy is a function from the possible operations to those of the plan. To add one, write the function and
name it in ``STRATEGIES``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.service_options import CompactionOptions
from hudi_engine.format.config.options import Options
from hudi_engine.table.services.compaction.operation import IO_MB, LOG_BYTES, LOG_FILES, CompactionOperation

Strategy = Callable[[Sequence[CompactionOperation], Options], list[CompactionOperation]]

_SUFFIX = "CompactionStrategy"
_DATE = re.compile(r"^(?:[^=/]+=)?(\d{4})[-/](?:[^=/]+=)?(\d{1,2})[-/](?:[^=/]+=)?(\d{1,2})$")


def choose(operations: Sequence[CompactionOperation], options: Options) -> list[CompactionOperation]:
    """Return the operations of the next plan, in the order of ``hoodie.compaction.strategy``.

    Raises:
        ConfigError: when the strategy is not known.
    """
    return strategy_of(options)(operations, options)


def strategy_of(options: Options) -> Strategy:
    """Return the strategy that ``hoodie.compaction.strategy`` names, by class or short name.

    Raises:
        ConfigError: when it is not known.
    """
    given = options[CompactionOptions.STRATEGY] or ""
    name = given.rpartition(".")[2]
    strategy = STRATEGIES.get(name if name.endswith(_SUFFIX) else name + _SUFFIX)
    if strategy is None:
        raise ConfigError(
            f"hoodie.compaction.strategy is {given!r}; legal values: {', '.join(sorted(STRATEGIES))}, with "
            "or without their package"
        )
    return strategy


def log_file_size_based(
    operations: Sequence[CompactionOperation], options: Options
) -> list[CompactionOperation]:
    """Return slices with the most bytes of logs first, above a threshold, up to the target IO."""
    return _most_first(operations, LOG_BYTES, options[CompactionOptions.LOG_SIZE_THRESHOLD], options)


def log_file_num_based(
    operations: Sequence[CompactionOperation], options: Options
) -> list[CompactionOperation]:
    """Return slices with the most log files first, above a threshold, up to the target IO."""
    return _most_first(operations, LOG_FILES, options[CompactionOptions.LOG_COUNT_THRESHOLD], options)


def _most_first(
    operations: Sequence[CompactionOperation], metric: str, threshold: int, options: Options
) -> list[CompactionOperation]:
    worthy = [each for each in operations if each.metrics.get(metric, 0.0) >= threshold]
    return bounded_io(sorted(worthy, key=lambda each: -each.metrics.get(metric, 0.0)), options)


def bounded_io(operations: Sequence[CompactionOperation], options: Options) -> list[CompactionOperation]:
    """Return slices as they come until the target IO is reached; the one that reaches it is part of the plan."""
    left = float(options[CompactionOptions.TARGET_IO])
    chosen = []
    for operation in operations:
        chosen.append(operation)
        left -= operation.metrics.get(IO_MB, 0.0)
        if left <= 0:
            break
    return chosen


def day_based(operations: Sequence[CompactionOperation], options: Options) -> list[CompactionOperation]:
    """Return slices of the newest days, a number of partitions; partitions that are no dates come last."""
    newest = sorted({each.partition for each in operations}, key=_day_key, reverse=True)
    taken = newest[: options[CompactionOptions.TARGET_PARTITIONS]]
    rank = {partition: position for position, partition in enumerate(taken)}
    return sorted(
        (each for each in operations if each.partition in rank), key=lambda each: rank[each.partition]
    )


def unbounded(operations: Sequence[CompactionOperation], _options: Options) -> list[CompactionOperation]:
    """Return all slices."""
    return list(operations)


def _day_key(partition: str) -> tuple[bool, date, str]:
    match = _DATE.match(partition)
    try:
        day = date(*(int(group) for group in match.groups())) if match else None
    except ValueError:
        day = None
    return (day is not None, day or date.min, partition)


STRATEGIES: dict[str, Strategy] = {
    "LogFileSizeBasedCompactionStrategy": log_file_size_based,
    "LogFileNumBasedCompactionStrategy": log_file_num_based,
    "BoundedIOCompactionStrategy": bounded_io,
    "DayBasedCompactionStrategy": day_based,
    "UnBoundedCompactionStrategy": unbounded,
}

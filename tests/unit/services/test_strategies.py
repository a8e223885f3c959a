"""Which file slices a compaction plan takes."""

from __future__ import annotations

from datetime import date

import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.table.services.compaction import plan
from hudi_engine.table.services.compaction.plan import (
    IO_MB,
    LOG_BYTES,
    LOG_FILES,
    CompactionOperation,
    strategy_of,
)

from tests.unit.services.tables import options


def operation(
    name: str, *, logs: int = 1, log_bytes: int = 10, io_mb: int = 0, partition: str = "p"
) -> CompactionOperation:
    metrics = {LOG_FILES: float(logs), LOG_BYTES: float(log_bytes), IO_MB: float(io_mb)}
    return CompactionOperation(partition, name, "20260101000000000", None, (), metrics)


def chosen(operations: list[CompactionOperation], strategy: str, **more: object) -> list[str]:
    given = options(compaction__strategy=strategy, **more)
    return [each.file_id for each in strategy_of(given)(operations, given)]


def test_by_log_size_the_largest_logs_come_first() -> None:
    found = [
        operation("small", log_bytes=5),
        operation("large", log_bytes=500),
        operation("mid", log_bytes=50),
    ]
    assert chosen(found, "LogFileSizeBasedCompactionStrategy") == ["large", "mid", "small"]


def test_by_log_size_slices_below_the_threshold_stay_out() -> None:
    found = [operation("small", log_bytes=5), operation("large", log_bytes=500)]
    assert chosen(found, "LogFileSizeBased", compaction__logfile__size__threshold=50) == ["large"]


def test_by_log_number_the_most_files_come_first_above_a_threshold() -> None:
    found = [operation("one"), operation("three", logs=3), operation("two", logs=2)]
    assert chosen(found, "LogFileNumBased", compaction__logfile__num__threshold=2) == ["three", "two"]


def test_the_slice_that_reaches_the_target_io_is_the_last() -> None:
    found = [operation("a", io_mb=6), operation("b", io_mb=6), operation("c", io_mb=6)]
    assert chosen(found, "BoundedIO", compaction__target__io=10) == ["a", "b"]
    assert chosen(found, "UnBounded", compaction__target__io=10) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "days",
    [
        ["2026/01/09", "2026/01/10", "2025/12/31"],
        ["day=2026-01-09", "day=2026-01-10", "day=2025-12-31"],
        ["y=2026/m=1/d=9", "y=2026/m=1/d=10", "y=2025/m=12/d=31"],
    ],
)
def test_by_day_the_newest_days_come_first_whatever_the_folder_style(days: list[str]) -> None:
    found = [operation(day[-2:], partition=day) for day in days]
    newest = chosen(found, "DayBasedCompactionStrategy", compaction__daybased__target__partitions=2)
    assert newest == [days[1][-2:], days[0][-2:]]


def test_by_day_a_partition_that_is_no_date_comes_last() -> None:
    found = [operation("text", partition="zebra"), operation("date", partition="2026-02-30")]
    found.append(operation("day", partition="2026-01-01"))
    assert chosen(found, "DayBased")[0] == "day"


@pytest.mark.parametrize("style", ["2026/01/{}", "2026-01-{}", "y=2026/m=01/d={}"])
def test_partition_aware_strategies_share_the_days_between_them(
    style: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "_today", lambda: date(2026, 1, 20))
    found = [operation(day, partition=style.format(day)) for day in ("12", "19", "20", "10", "09", "21")]
    found.append(operation("text", partition="zebra"))

    bounded = chosen(found, "BoundedPartitionAware", compaction__daybased__target__partitions=10)
    unbounded = chosen(found, "UnBoundedPartitionAware", compaction__daybased__target__partitions=10)
    assert bounded == ["21", "20", "19", "12", "10"]
    assert unbounded == ["09", "text"]


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"'com.example.Mine'; legal values: BoundedIOCompactionStrategy, "):
        chosen([], "com.example.Mine")

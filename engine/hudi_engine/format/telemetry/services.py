"""Metrics of commits and table services under Hudi's names (``HoodieMetrics``).

A compaction and a clustering report what a commit does, as ``compaction`` and ``replacecommit``; the others how long they
took and what they removed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from hudi_engine.errors import HudiError
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.telemetry.figures import replaces_file
from hudi_engine.format.telemetry.reporters import is_reported, report
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.clock import parse_instant_time
from hudi_engine.format.timeline.commit_metadata import NO_PREVIOUS_COMMIT, CommitMetadata


def commit_metrics(
    action: str, instant: str, metadata: CommitMetadata, seconds: Mapping[str, float], zone: tzinfo | None
) -> dict[str, int]:
    """Return the metrics of a commit by ``<action>.<metric>``; durations are milliseconds."""
    stats = [stat for _, stat in metadata.write_stats()]
    values = {
        "duration": round(sum(seconds.values()) * 1000),
        "commitTime": int(parse_instant_time(instant, zone).timestamp() * 1000),
        "totalPartitionsWritten": len(metadata.partition_to_write_stats),
        "totalFilesInsert": sum(stat.prev_commit in (None, NO_PREVIOUS_COMMIT) for stat in stats),
        "totalFilesUpdate": sum(stat.prev_commit not in (None, NO_PREVIOUS_COMMIT) for stat in stats),
        "totalRecordsWritten": sum(stat.num_writes or 0 for stat in stats),
        "totalUpdateRecordsWritten": sum(stat.num_update_writes or 0 for stat in stats),
        "totalInsertRecordsWritten": sum(stat.num_inserts or 0 for stat in stats),
        "totalRecordsDeleted": sum(stat.num_deletes or 0 for stat in stats),
        "totalBytesWritten": sum(stat.total_write_bytes or 0 for stat in stats),
        "totalCompactedRecordsUpdated": sum(stat.total_updated_records_compacted or 0 for stat in stats),
        "totalLogFilesCompacted": sum(stat.total_log_files_compacted or 0 for stat in stats),
        "totalLogFilesSize": sum(stat.total_log_size_compacted or 0 for stat in stats),
        "totalBytesRewritten": sum(stat.total_write_bytes or 0 for stat in stats if replaces_file(stat)),
        **{f"{name}.duration": round(taken * 1000) for name, taken in seconds.items()},
    }
    return {f"{action}.{name}": value for name, value in values.items()}


logger = logging.getLogger(__name__)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
_Service = Callable[Concatenate[Storage, Options, Arguments], Result]


@dataclass(frozen=True)
class Done:
    """What a service has done."""

    action: str
    values: Mapping[str, int] = field(default_factory=dict)
    commit: tuple[str, str] | None = None


def measured(
    done_of: Callable[[Result], Done | None],
) -> Callable[[_Service[Arguments, Result]], _Service[Arguments, Result]]:
    """Report the metrics of a service when it has done something; its result stays whatever happens here."""

    def wrap(run: _Service[Arguments, Result]) -> _Service[Arguments, Result]:
        @wraps(run)
        def with_metrics(
            storage: Storage, options: Options, /, *given: Arguments.args, **named: Arguments.kwargs
        ) -> Result:
            begun = time.monotonic()
            result = run(storage, options, *given, **named)
            if is_reported(options):
                done = done_of(result)
                if done is not None:
                    report_service(storage, options, done, time.monotonic() - begun)
            return result

        return with_metrics

    return wrap


def report_service(storage: Storage, options: Options, done: Done, seconds: float) -> None:
    """Report what a service has done; a failure is a warning."""
    if not is_reported(options):
        return
    try:
        config = TableConfig.load(storage)
        values = {f"{done.action}.{name}": value for name, value in done.values.items()}
        if done.commit is not None:
            action, instant = done.commit
            timeline = Timeline.load(storage, config)
            metadata = timeline.commit_metadata(timeline.find(instant, action))
            values.update(commit_metrics(done.action, instant, metadata, {}, config.timeline_zone))
        values[f"{done.action}.duration"] = round(seconds * 1000)
        report(options, config.name, values)
    except (HudiError, OSError) as error:
        logger.warning("the metrics of %s of %s could not be reported: %s", done.action, storage.base, error)

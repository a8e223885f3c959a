"""Metrics of commits and services under the names that Apache Hudi reports, as a text file for Prometheus.

Hudi's names are ``<prefix>.<action>.<metric>`` (``HoodieMetrics``), with the table's name as prefix unless
``hoodie.metrics.reporter.metricsname.prefix`` sets another; its Prometheus reporter writes a dot as ``_``. The file is what
the textfile collector of Prometheus' node exporter reads: one a table, always whole, and a metric stays in it until it is
reported again.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from datetime import tzinfo
from pathlib import Path

from hudi_engine.format.config.declared.telemetry_options import TelemetryOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.format.telemetry.figures import replaces_file
from hudi_engine.format.timeline.clock import parse_instant_time
from hudi_engine.format.timeline.commit_metadata import NO_PREVIOUS_COMMIT, CommitMetadata

logger = logging.getLogger(__name__)

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_:]")
_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*) (\S+)$")


def commit_metrics(
    action: str, instant: str, metadata: CommitMetadata, seconds: Mapping[str, float], zone: tzinfo | None
) -> dict[str, int]:
    """Return the metrics of a commit by ``<action>.<metric>``; durations are milliseconds.

    Args:
        zone: Zone of the digits of instants, None for that of this machine.
    """
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


def report(options: Options, config: TableConfig, values: Mapping[str, int]) -> None:
    """Bring a table's metrics file up to date; a failure is a warning."""
    folder = options[TelemetryOptions.TEXTFILE_FOLDER]
    if folder is None or not options[TelemetryOptions.METRICS]:
        return
    prefix = options[TelemetryOptions.METRICS_PREFIX] or config.name
    path = Path(folder) / f"{_name(prefix)}.prom"
    try:
        known = _samples(path)
        known.update({_name(f"{prefix}.{name}"): str(value) for name, value in values.items()})
        _write(path, known)
    except OSError as error:
        logger.warning("the metrics of %s could not be written to %s: %s", config.name, path, error)


def _samples(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return {}
    return {found[1]: found[2] for line in text.splitlines() if (found := _SAMPLE.match(line))}


def _write(path: Path, samples: Mapping[str, str]) -> None:
    """Replace the file as a whole: a collector never reads half of it."""
    lines = [f"# TYPE {name} gauge\n{name} {samples[name]}\n" for name in sorted(samples)]
    LocalStorage(str(path.parent)).replace(path.name, "".join(lines).encode())


def _name(text: str) -> str:
    name = _ILLEGAL.sub("_", text)
    return f"_{name}" if name[:1].isdigit() else name

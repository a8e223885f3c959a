"""Telling of a commit that stands: in the file of metrics, and to the receiver of callbacks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hudi_engine.errors import HudiError
from hudi_engine.format.config.declared.telemetry_options import TelemetryOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.telemetry.callback import call_back
from hudi_engine.format.telemetry.metrics import commit_metrics, report
from hudi_engine.format.timeline.commit_metadata import CommitMetadata

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Commit:
    """What is told of a commit.

    Args:
        action: ``commit``, ``deltacommit`` or ``replacecommit``.
    """

    action: str
    instant: str
    metadata: CommitMetadata
    seconds: Mapping[str, float]


def announce_commit(
    options: Options, read_config: Callable[[], TableConfig], base: str, commit: Commit
) -> None:
    """Tell of a commit where that is asked for; whatever fails is a warning.

    Args:
        options: ``hoodie.metrics.*`` and ``hoodie.write.commit.callback.*``.
    """
    if not (options[TelemetryOptions.METRICS] or options[TelemetryOptions.CALLBACK]):
        return
    try:
        config = read_config()
    except (HudiError, OSError) as error:
        logger.warning(
            "the commit %s of %s stands, but nobody is told of it: %s", commit.instant, base, error
        )
        return
    if options[TelemetryOptions.METRICS]:
        zone = config.timeline_zone
        figures = commit_metrics(commit.action, commit.instant, commit.metadata, commit.seconds, zone)
        report(options, config, figures)
    call_back(options, (config.name, base), commit.instant, commit.action, commit.metadata)

"""When inline clustering is due: a pure function of the timeline."""

from __future__ import annotations

from hudi_engine.format.config.declared.clustering_options import ClusteringOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.table.txn.conflict import is_clustering


def clustering_due(timeline: Timeline, options: Options) -> bool:
    """Return whether enough writes have completed since the last clustering, planned or done.

    Args:
        options: ``hoodie.clustering.inline.max.commits``.
    """
    newest = (
        each.requested_time
        for each in reversed(timeline.instants)
        if each.action == "replacecommit" and is_clustering(timeline, each)
    )
    last = next(newest, "")
    since = sum(each.requested_time > last for each in timeline.completed_writes)
    return since >= options[ClusteringOptions.MAX_COMMITS]

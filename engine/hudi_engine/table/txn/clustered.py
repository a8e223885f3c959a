"""Writes to file groups of a planned clustering: refused before they do any work, or let through.

``hoodie.clustering.updates.strategy`` decides. A write that is let through changes what was planned, so that the plan
cannot run any more; ``hoodie.clustering.rollback.pending.replacecommit.on.conflict`` says who takes it back. An overwrite
takes the file groups out, whose rows the plan would only move: it takes the plan back unless that option is set to false.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from hudi_engine.errors import ConfigError, CorruptTableError, PlannedMeanwhileError, WriteConflictError
from hudi_engine.format.config.declared.clustering_options import ClusteringOptions
from hudi_engine.format.config.enums import WriteOperation
from hudi_engine.format.config.options import Options
from hudi_engine.format.timeline.active import Timeline
from hudi_engine.format.timeline.instant import Instant, State
from hudi_engine.table.txn.footprint import FileGroup
from hudi_engine.table.txn.liveness import Liveness


@dataclass(frozen=True)
class PlannedBy:
    """A clustering that holds file groups.

    Args:
        running: Whether a process that lives, or may live, is carrying it out.
        awaited: Whether it is being carried out, or so newly planned that its planner may be about to.
    """

    instant: str
    running: bool = False
    awaited: bool = False


_ALLOW = {"SparkRejectUpdateStrategy": False, "SparkAllowUpdateStrategy": True}


def is_clustering(timeline: Timeline, instant: Instant) -> bool:
    """Return whether a pending replacecommit is a clustering plan rather than an overwrite that is under way."""
    try:
        plan = timeline.plan(instant)
    except CorruptTableError:
        plan = None
    if plan is not None:
        return plan.get("operationType") == WriteOperation.CLUSTER or bool(plan.get("clusteringPlan"))
    if instant.state is State.REQUESTED:
        return False
    try:
        return timeline.planned_metadata(instant) is None
    except CorruptTableError:
        return False


def updates_allowed(options: Options) -> bool:
    """Return whether file groups of a planned clustering may be written to.

    Raises:
        ConfigError: when the strategy is not known.
    """
    given = options[ClusteringOptions.UPDATES_STRATEGY]
    name = given.rpartition(".")[2]
    if name not in _ALLOW:
        legal = ", ".join(_ALLOW)
        raise ConfigError(
            f"{ClusteringOptions.UPDATES_STRATEGY} is {given!r}; legal values: {legal}, with or without their package"
        )
    return _ALLOW[name]


def takes_plans_back(options: Options) -> bool:
    """Return whether a plan whose file groups have changed is rolled back."""
    return options[ClusteringOptions.ROLLBACK_ON_CONFLICT]


def gives_way_to_overwrites(options: Options) -> bool:
    """Return whether an overwrite of planned file groups rolls the plan back."""
    return takes_plans_back(options) or not options.is_set(ClusteringOptions.ROLLBACK_ON_CONFLICT)


def closed_groups(timeline: Timeline, options: Options, liveness: Liveness) -> Mapping[FileGroup, PlannedBy]:
    """Return the file groups that a write must leave alone, with the clustering that has planned them.

    Args:
        options: ``hoodie.clustering.updates.strategy``.
        liveness: Tells the clusterings that are being run.
    """
    planned = {} if updates_allowed(options) else timeline.pending_clustering_file_groups()
    holding = set(planned.values())
    at_work = {each: liveness.is_at_work(each) for each in timeline.pending if each.requested_time in holding}
    holders = {
        each.requested_time: PlannedBy(each.requested_time, each.state is State.INFLIGHT and lives, lives)
        for each, lives in at_work.items()
    }
    return {group: holders[instant] for group, instant in planned.items()}


def refuse_closed(touched: Collection[FileGroup], closed: Mapping[FileGroup, PlannedBy]) -> None:
    """Refuse a write that would change a file group of a planned clustering.

    Args:
        touched: File groups that it would write to or replace.

    Raises:
        WriteConflictError: naming the clustering that is being run, or about to be, and the file group.
        PlannedMeanwhileError: naming the clustering that nobody runs, the file group and the ways out.
    """
    found = sorted(group for group in touched if group in closed)
    if not found:
        return
    (partition, file_id), holder = found[0], closed[found[0]]
    what = f"file group {file_id!r} of partition {partition!r} is part of clustering {holder.instant}"
    if holder.running:
        raise WriteConflictError(
            f"{what}, which another process is running now, and must not change until it is done; nothing was written. Wait "
            "until it is done, and run this write again"
        )
    kind = WriteConflictError if holder.awaited else PlannedMeanwhileError
    raise kind(
        f"{what}, which is planned and not done, and must not change until then; nothing was written. Run that clustering "
        f"or roll it back, and run this write again, or set {ClusteringOptions.UPDATES_STRATEGY} to SparkAllowUpdateStrategy"
    )

"""Writes to file groups of a planned clustering: refused before they do any work, or let through.

``hoodie.clustering.updates.strategy`` decides. A write that is let through changes what was planned, so that the plan
cannot run any more; ``hoodie.clustering.rollback.pending.replacecommit.on.conflict`` says who takes it back. An overwrite
takes the file groups out, whose rows the plan would only move: it takes the plan back unless that option is set to false.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hudi_engine.config.declared.clustering_options import ClusteringOptions
from hudi_engine.config.options import Options
from hudi_engine.errors import ConfigError, WriteConflictError
from hudi_engine.timeline.active import Timeline
from hudi_engine.txn.footprint import FileGroup

_ALLOW = {"SparkRejectUpdateStrategy": False, "SparkAllowUpdateStrategy": True}


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


def closed_groups(timeline: Timeline, options: Options) -> Mapping[FileGroup, str]:
    """Return the file groups that a write must leave alone, with the clustering that has planned them."""
    return {} if updates_allowed(options) else timeline.pending_clustering_file_groups()


def refuse_closed(touched: Collection[FileGroup], closed: Mapping[FileGroup, str]) -> None:
    """Refuse a write that would change a file group of a planned clustering.

    Args:
        touched: File groups that it would write to or replace.
        closed: What :func:`closed_groups` returns.

    Raises:
        WriteConflictError: naming the clustering, the file group and the ways out.
    """
    found = sorted(group for group in touched if group in closed)
    if found:
        partition, file_id = found[0]
        raise WriteConflictError(
            f"file group {file_id!r} of partition {partition!r} is part of clustering {closed[found[0]]}, which is planned and "
            "not done, and must not change until then; nothing was written. Run that clustering or roll it back, and run "
            f"this write again, or set {ClusteringOptions.UPDATES_STRATEGY} to SparkAllowUpdateStrategy"
        )

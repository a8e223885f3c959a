"""Scheduling a clustering: the plan in ``T.replacecommit.requested``.

From then on the file groups of the plan must not change until it is done or taken back; who writes to them is refused
(`hudi_engine.table.txn.conflict`). Nothing is read or written but the plan.
"""

from __future__ import annotations

import logging

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.clustering_options import ClusteringOptions
from hudi_engine.format.config.declared.write_options import IndexOptions
from hudi_engine.format.config.enums import IndexType
from hudi_engine.format.config.options import Options
from hudi_engine.format.layout.layout import SORT_COLUMNS, STRATEGY, RowLayout
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.lookup.bucket_names import refuse_other_bucket_engines, refuse_unsaid_buckets
from hudi_engine.table.services.clustering.choose import choose_groups
from hudi_engine.table.services.clustering.plan import ClusteringPlan
from hudi_engine.table.services.clustering.strategy import check_strategy
from hudi_engine.table.services.opening import open_locked
from hudi_engine.table.services.result import ClusteringResult
from hudi_engine.table.snapshot.publication import publication_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.metadata_table import drop_foreign_metadata_table
from hudi_engine.table.txn.open_instant import OpenInstant
from hudi_engine.table.txn.publication import Publication
from hudi_engine.table.txn.recovery import table_lock
from hudi_engine.table.txn.storage_errors import storage_errors

logger = logging.getLogger(__name__)


def schedule_clustering(
    storage: Storage, options: Options, *, publish: Publication | None = None, dry_run: bool = False
) -> ClusteringResult:
    """Plan a clustering now, whatever ``hoodie.clustering.inline.max.commits`` says.

    Args:
        options: ``hoodie.clustering.plan.*`` and ``hoodie.layout.optimize.*``.
        publish: Published file lists; None for those there are, made anew without Spark.
        dry_run: Only say what the plan would take.

    Returns:
        The plan's instant, or the reason why there is nothing to plan.

    Raises:
        ConfigError: when strategy or columns make no sense, or the table has a bucket index.
        UnsupportedTableError: when this engine must not write to the table.
        WriteConflictError: when the table's lock is not free in time.
        StorageError: when the storage failed; nothing is planned.
    """
    if dry_run:
        state = TableState.load(storage)
        state.config.check_writable()
        return plan_clustering(state, options)[1]
    publication = publish if publish is not None else publication_of(storage)
    with storage_errors(storage, "plan a clustering"), table_lock(storage, options):
        return schedule_clustering_locked(open_locked(storage, options, publication), options)


def schedule_clustering_locked(state: TableState, options: Options) -> ClusteringResult:
    """Plan a clustering of a table that was just read; the caller holds its lock."""
    plan, result = plan_clustering(state, options)
    if plan is None:
        return result
    config = drop_foreign_metadata_table(state.storage, state.config)
    live = {(each.partition, each.file_id): each for each in state.view(plan.partitions).latest_slices()}
    body = plan.to_bytes(state.storage, live)
    # Owned while it is written: a plan that was cut short looks like an overwrite, which the next writer rolls back.
    opened = OpenInstant.announce(
        state.storage, config, state.timeline, "replacecommit", body, owned_by=options
    )
    opened.release()
    logger.info("scheduled clustering %s of %d file groups", opened.time, len(plan.slices))
    return in_numbers(plan, opened.time, "scheduled")


def plan_clustering(state: TableState, options: Options) -> tuple[ClusteringPlan | None, ClusteringResult]:
    """Return what a clustering planned now would do, and the same in numbers; nothing is written."""
    state.check_rows_writable()
    refuse_bucket_index(state, options)
    execution = options[ClusteringOptions.EXECUTION_STRATEGY]
    check_strategy(execution)
    layout = RowLayout.from_options(options)
    schema = state.data_schema()
    if schema is not None:
        layout = layout.fitted(schema)
    groups, reason = choose_groups(state, options)
    if not groups:
        return None, ClusteringResult(reason=reason)
    refuse_other_bucket_engines(state.storage, state.config)
    ids = (each.file_id for group in groups for each in group.slices)
    refuse_unsaid_buckets(state.config, options, ids)
    params = {SORT_COLUMNS.key: ",".join(layout.columns)} if layout.columns else {}
    if layout.is_curve:
        params[STRATEGY.key] = layout.strategy.value
    preserves = options[ClusteringOptions.PRESERVE_COMMIT_METADATA]
    plan = ClusteringPlan(tuple(groups), execution, params, preserves)
    return plan, in_numbers(plan, None, "none")


def in_numbers(plan: ClusteringPlan, instant: str | None, state: str) -> ClusteringResult:
    """Return a plan in numbers."""
    return ClusteringResult(
        instant,
        state,
        len(plan.slices),
        groups=len(plan.groups),
        files_read=sum(len(each.names) for each in plan.slices),
        partitions=tuple(sorted(plan.partitions)),
    )


def refuse_bucket_index(state: TableState, options: Options) -> None:
    """Refuse a table whose keys must be in the file group of their bucket, as Apache Hudi does.

    Raises:
        ConfigError: naming the index.
    """
    if IndexType.BUCKET in (state.config.properties.get(IndexOptions.TYPE.key), options[IndexOptions.TYPE]):
        raise ConfigError(
            f"{IndexOptions.TYPE} of table {state.config.name!r} is {IndexType.BUCKET}, which places every key in "
            "the file group of its bucket; clustering would move it. Leave the clustering out, or rebuild the table with "
            "another index"
        )

"""Batches of a build that ended early: once the table exists dbt runs the newest ones only, and a warning names the gap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from hudi_engine import HudiTable
from hudi_engine.spark.write.rows.replacement import with_zone

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.model.run_notes import BATCH_END, BUILDS, INVOCATION
from dbt.adapters.hudi.run import ModelRun

_LOOKED_AT = 8
"""Newest commits among which that of the last batch is looked for: services commit after it."""


def as_first_batch(plan: ModelPlan, run: ModelRun | None) -> ModelPlan:
    """Return the plan of a batch that builds the table, whose commit and those of later batches of this run note it."""
    if plan.merge.window is None:
        return plan
    if run is not None:
        run.builds = True
    return _noted(plan)


def as_later_batch(plan: ModelPlan, table: HudiTable, run: ModelRun) -> ModelPlan:
    """Return the plan of a batch that goes into a table, and warn when batches may be missing before it."""
    window = plan.merge.window
    if window is None or window.start is None:
        return plan
    if run.builds is None:
        run.builds = False
        _warn_gap(plan, table, window.start)
    return _noted(plan) if run.builds else plan


def resumes_build(unique_id: str, manifest: Any) -> bool:
    """Whether ``dbt retry`` runs batches of a model again of which others are done.

    It repeats ``--full-refresh`` if the run had it that it follows. The first batch must not rebuild the table then: the
    rows of those that are done would go with the old table.
    """
    node = None if manifest is None else manifest.nodes.get(unique_id)
    before = getattr(node, "previous_batch_results", None)
    return bool(before is not None and before.successful)


def _noted(plan: ModelPlan) -> ModelPlan:
    return replace(plan, run_notes={**plan.run_notes, BUILDS: "true"})


def _warn_gap(plan: ModelPlan, table: HudiTable, start: datetime) -> None:
    last = next((each for each in table.commits(_LOOKED_AT) if not each.is_service), None)
    if last is None or BUILDS not in last.extra or BATCH_END not in last.extra:
        return
    end, start = with_zone(datetime.fromisoformat(last.extra[BATCH_END])), with_zone(start)
    if end < start:
        end = _end_of_build(table, last.extra)
    if end >= start:
        return
    # no error even where warnings are: days without rows leave no commit, so each run warns until one has rows
    logger.warning(
        "{}: the run that built it (invocation {}) ended with the batch up to {}, and this run begins at {}. Batches between them "
        "had no rows, or are missing: dbt asks for the newest batches alone once the table is there. If that run was interrupted, "
        "or ran long ago, run the model with --event-time-start {} --event-time-end {}",
        f"{plan.schema}.{plan.name}",
        last.extra.get(INVOCATION, "unknown"),
        end.isoformat(),
        start.isoformat(),
        _argument(end),
        _argument(start),
    )


def _end_of_build(table: HudiTable, last: Mapping[str, str]) -> datetime:
    """Return the greatest end of the batches of the run that a commit is of: threads need not commit them in their order."""
    run = last.get(INVOCATION)
    notes = [last, *(each.extra for each in table.commits() if each.extra.get(INVOCATION) == run)]
    return max(with_zone(datetime.fromisoformat(each[BATCH_END])) for each in notes if BATCH_END in each)


def _argument(moment: datetime) -> str:
    """Return a moment as dbt's command line takes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S")

"""Batches of a build that ended early: dbt asks for the newest ones alone once the table is there, and that is said."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

from dbt_common.invocation import get_invocation_id
from hudi_engine import HudiTable

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.model.run_notes import BATCH_END, BUILDS, INVOCATION

_LOOKED_AT = 8
"""Newest commits among which that of the last batch is looked for: services commit after it."""

_built: set[tuple[str, str]] = set()
_begun: set[tuple[str, str]] = set()


def as_first_batch(plan: ModelPlan) -> ModelPlan:
    """Return the plan of a batch that builds the table, whose commit and those of later batches of this run say so."""
    if plan.merge.window is None:
        return plan
    _built.add((get_invocation_id(), plan.base))
    return _noted(plan)


def as_later_batch(plan: ModelPlan, table: HudiTable) -> ModelPlan:
    """Return the plan of a batch that goes into a table, and warn when batches may be missing before it.

    Args:
        plan: The model.
        table: Its table.
    """
    window, run = plan.merge.window, (get_invocation_id(), plan.base)
    if window is None or window.start is None:
        return plan
    if run in _built:
        return _noted(plan)
    if run not in _begun:
        _begun.add(run)
        _say_of_gap(plan, table, window.start)
    return plan


def _noted(plan: ModelPlan) -> ModelPlan:
    return replace(plan, run_notes={**plan.run_notes, BUILDS: "true"})


def _say_of_gap(plan: ModelPlan, table: HudiTable, start: datetime) -> None:
    last = next((each for each in table.commits(_LOOKED_AT) if not each.is_service), None)
    if last is None or BUILDS not in last.extra or BATCH_END not in last.extra:
        return
    end, start = _aware(datetime.fromisoformat(last.extra[BATCH_END])), _aware(start)
    if end >= start:
        return
    # no error even where warnings are: days without rows leave no commit, so it may be said of each run
    logger.warning(
        "{}: the run that built it (invocation {}) ended with the batch up to {}, and this run begins at {}. Batches between them "
        "had no rows, or are missing: dbt asks for the newest batches alone once the table is there. If that run was interrupted, "
        "or ran long ago, run the model with --event-time-start {} --event-time-end {}",
        f"{plan.schema}.{plan.name}",
        last.extra.get(INVOCATION, "unknown"),
        end.isoformat(),
        start.isoformat(),
        _day(end),
        _day(start),
    )


def _aware(moment: datetime) -> datetime:
    """Return a moment in UTC, which dbt means where it names no zone."""
    return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)


def _day(moment: datetime) -> str:
    """Return a moment as dbt's command line takes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S")

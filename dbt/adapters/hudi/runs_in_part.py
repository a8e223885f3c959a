"""Runs that take a part of the rows: those with ``--empty``, and those with ``--sample``, which may replace more than they take."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from dbt.adapters.base.meta import AdapterMeta, available

from dbt.adapters.hudi.logs import warn
from dbt.adapters.hudi.model.feeds import sampled_beside
from dbt.adapters.hudi.model.plan import ModelPlan

_ENDING = ("invalidate", "new_record")
_AGAIN = "run it without --sample over all that was replaced, or with --full-refresh, to have them back"


class RunsInPart(metaclass=AdapterMeta):
    """The adapter's methods for runs with ``--empty`` and ``--sample``."""

    def in_part(self, plan: ModelPlan) -> ModelPlan:
        """Return a plan with the part of the rows that the run takes."""
        args = self.config.args  # type: ignore[attr-defined]
        sample = getattr(args, "sample", None)
        return replace(
            plan,
            is_empty_run=bool(getattr(args, "EMPTY", False)),
            sample=None if sample is None else (sample.start, sample.end),
        )

    @available.parse_none
    def hudi_say_of_sample(
        self, plan: ModelPlan, model: Mapping[str, Any], code: str, in_run: list[str]
    ) -> None:
        """Warn where a sample takes the place of rows that are not of its time, before anything of the table changes.

        Args:
            plan: The model or snapshot, whose table is there and goes on.
            in_run: Unique ids of the nodes that the run builds.
        """
        lost = None if plan.sample is None else lost_to_sample(plan, model.get("config") or {})
        if lost is None or plan.sample is None:
            return
        start, end = plan.sample
        through = sample_read(plan, model, code, (), in_run, self.get_macro_resolver())  # type: ignore[attr-defined]
        if through is None:
            return
        read = f"reads {through}, of which it may have a sample" if through else "reads a sample"
        what, back = lost
        warn(
            f"{plan.schema}.{plan.name} {read} ({start.isoformat()} up to {end.isoformat()}), and {what}. To keep them leave the "
            f"{model.get('resource_type', 'model')} out (--exclude {selector_of(model)}); {back}"
        )


def sample_read(
    plan: ModelPlan,
    model: Mapping[str, Any],
    code: str,
    inputs: Collection[str],
    in_run: Collection[str],
    manifest: Any,
) -> str | None:
    """Return through which node a query reads a sample, ``""`` where it does so itself; None where it reads none."""
    if plan.sample is None:
        return None
    # so a filter of dbt begins
    if f" >= '{plan.sample[0]}' and " in code:
        return ""
    return sampled_beside(model, inputs, in_run, manifest)


def selector_of(model: Mapping[str, Any]) -> str:
    """Return what names a node to ``--select`` and ``--exclude``, which is not its alias."""
    version = model.get("version")
    return str(model.get("name")) if version is None else f"{model.get('name')}.v{version}"


def lost_to_sample(plan: ModelPlan, config: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return what a table loses where the query has a part of its rows, and the way back; None where nothing else goes.

    Batches replace what is of the sample's time alone, and rows that are known by their keys only themselves.
    """
    merge, called = plan.merge, f"incremental_strategy {plan.merge.strategy!r}"
    if config.get("materialized") == "snapshot":
        ends = config.get("hard_deletes") in _ENDING or config.get("invalidate_hard_deletes")
        back = "the next run without --sample begins them anew, with a gap in their history"
        return ("hard_deletes ends the versions of rows that the sample leaves out", back) if ends else None
    if merge.operation == "insert_overwrite":
        replaced = "each partition of its rows" if plan.table.partition_by else "the table"
    elif merge.operation == "insert_overwrite_table":
        replaced = "the table"
    elif merge.operation == "replace_where":
        replaced = "all that its predicates name"
    elif merge.operation == "delete+insert" and not _by_record_key(plan):
        replaced = f"all rows with a {', '.join(merge.delete_by)} of the sample's"
    else:
        replaced = None
    if replaced is not None:
        return f"{called} replaces {replaced}: stored rows among these that the sample leaves out go", _AGAIN
    by_source = None if merge.clauses is None else merge.clauses.by_source
    if by_source is not None:
        done = "deletes" if by_source == "delete" else "changes"
        said = (
            f"not_matched_by_source_action {done} stored rows that the run has no row for, those that the sample leaves out "
            "among them"
        )
        return said, "run it without --sample, or with --full-refresh, to have them back"
    return None


def _by_record_key(plan: ModelPlan) -> bool:
    """Whether a model that deletes by its `unique_key` says by a `record_key` of its own that no two rows share that."""
    key = {name.lower() for name in plan.table.record_key}
    return bool(key) and key < {name.lower() for name in plan.merge.delete_by}

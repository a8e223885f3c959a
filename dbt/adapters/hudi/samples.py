"""Runs with ``--sample`` and ``--empty``: which rows they take, and which stored rows a sample replaces.

Of a batch only the sample's part of its window is replaced (`rows/builds.py:_replace`), and rows known by their keys replace
themselves. Every other strategy may replace rows that the sample leaves out: `rows_lost` names them for a warning.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.hudi.logs import warn
from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.model.selected import table_of
from dbt.adapters.hudi.run import ModelRun

_ENDING = ("invalidate", "new_record")
_BUILD_AGAIN = "run it without --sample over all that was replaced, or with --full-refresh, to have them back"


def in_part(plan: ModelPlan, args: Any) -> ModelPlan:
    """Return a plan with the part of the rows that the command takes."""
    sample = getattr(args, "sample", None)
    return replace(
        plan,
        is_empty_run=bool(getattr(args, "EMPTY", False)),
        sample=None if sample is None else (sample.start, sample.end),
    )


def check_sample(run: ModelRun, in_run: Collection[str], manifest: Any) -> None:
    """Refuse a sample besides changes, and warn of stored rows that a sample replaces and does not have."""
    plan = run.plan
    through = None if plan.sample is None else sample_read(run, in_run, manifest)
    if plan.sample is None or through is None:
        return
    if run.feed.inputs:
        _check_changes(run, through)
    lost = None if run.rebuilds else rows_lost(plan, run.node.get("config") or {})
    if lost is None:
        return
    reads = f"reads {through}, of which it may have a sample" if through else "reads a sample"
    start, end = (each.isoformat() for each in plan.sample)
    what, way_back = lost
    warn(
        f"{plan.schema}.{plan.name} {reads} ({start} up to {end}), and {what}. To keep them leave the "
        f"{run.node.get('resource_type', 'model')} out (--exclude {_selector(run)}); {way_back}"
    )


def rows_lost(plan: ModelPlan, config: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return which stored rows go that a sample of the query does not have, and the way back; None where none do."""
    merge, strategy = plan.merge, f"incremental_strategy {plan.merge.strategy!r}"
    if config.get("materialized") == "snapshot":
        ends = config.get("hard_deletes") in _ENDING or config.get("invalidate_hard_deletes")
        way_back = "the next run without --sample begins them again, with a gap in their history"
        return (
            ("hard_deletes ends the versions of rows that the sample leaves out", way_back) if ends else None
        )
    key = {name.lower() for name in plan.table.record_key}
    replaced = None
    if merge.operation == "insert_overwrite" and plan.table.partition_by:
        replaced = "each partition of its rows"
    elif merge.operation in ("insert_overwrite", "insert_overwrite_table"):
        replaced = "the table"
    elif merge.operation == "replace_where":
        replaced = "all that its predicates name"
    # with a record_key of its own within unique_key no two rows have the same values of that
    elif merge.operation == "delete+insert" and not (
        key and key < {name.lower() for name in merge.delete_by}
    ):
        replaced = f"all rows with a {', '.join(merge.delete_by)} of the sample's"
    if replaced is not None:
        return (
            f"{strategy} replaces {replaced}: stored rows among these that the sample leaves out go",
            _BUILD_AGAIN,
        )
    by_source = None if merge.clauses is None else merge.clauses.left_action
    if by_source is None:
        return None
    does = "deletes" if by_source == "delete" else "changes"
    what = f"not_matched_by_source_action {does} stored rows that the run has no row for, also where the sample leaves it out"
    return what, "run it without --sample, or with --full-refresh, to have them back"


def sample_read(run: ModelRun, in_run: Collection[str], manifest: Any) -> str | None:
    """Return through which node a query reads a sample, ``""`` where it does so itself; None where it reads none."""
    assert run.plan.sample is not None
    # so a filter of dbt begins
    if f" >= '{run.plan.sample[0]}' and " in str(run.node.get("compiled_code") or ""):
        return ""
    return sampled_besides(run.node, run.feed.inputs, in_run, manifest)


def sampled_besides(
    model: Mapping[str, Any], inputs: Collection[str], in_run: Collection[str], manifest: Any
) -> str | None:
    """Return the name of a node that a model reads besides its inputs and that the run builds, perhaps of a sample.

    Args:
        inputs: The tables whose changes it takes, as schema and name in lower case.
    """
    above = list((model.get("depends_on") or {}).get("nodes") or ())
    for name in above:
        node = manifest.nodes.get(name)
        kind = None if node is None else getattr(node.config, "materialized", None)
        # A view that the run does not build reads tables that it may build of a sample.
        if kind == "ephemeral" or (kind == "view" and name not in in_run and table_of(node) not in inputs):
            above += [each for each in node.depends_on_nodes if each not in above]
        elif node is not None and name in in_run and table_of(node) not in inputs:
            return str(node.name)
    return None


def _check_changes(run: ModelRun, through: str) -> None:
    """Refuse rows made of changes and of a sample besides them; a table that is built of them notes that.

    Args:
        through: The node that the model reads the sample through; ``""`` where it does so itself.
    """
    if not run.rebuilds and not run.feed.brings_nothing:
        which, too = (f" (through {through})", f" and {through}") if through else ("", "")
        raise DbtRuntimeError(
            f"{run.plan.schema}.{run.plan.name} takes changes, and with --sample what else it reads{which} is a part of the "
            "rows: what the changes need of the others would be missing for good, as no later run takes them again. Leave "
            f"the model out (--exclude {_selector(run)}), run it{too} without --sample, or build it of the sample alone with "
            "--full-refresh"
        )
    run.feed.is_of_sample = run.rebuilds


def _selector(run: ModelRun) -> str:
    """Return the name of a node for ``--select`` and ``--exclude``, which is not its alias."""
    version = run.node.get("version")
    return str(run.node.get("name")) if version is None else f"{run.node.get('name')}.v{version}"

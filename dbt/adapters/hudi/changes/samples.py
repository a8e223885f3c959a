"""Changes in runs with ``--sample``, which tell them all, while of what a model reads beside them there is a part."""

from __future__ import annotations

from typing import Any

from dbt.adapters.base.meta import AdapterMeta, available
from dbt.adapters.base.relation import BaseRelation
from hudi_engine.errors import HistoryGapError

from dbt.adapters.hudi.changes.feed import OF_A_SAMPLE, Feed
from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.runs_in_part import sample_read, selector_of


class Samples(metaclass=AdapterMeta):
    """What a model with changes may be made of."""

    @available.parse_none
    def hudi_check_sample(
        self, plan: ModelPlan, model: dict[str, Any], code: str, rebuilds: bool, in_run: list[str]
    ) -> None:
        """Refuse a sample of rows beside changes; one that a new table is built of is noted in it.

        Args:
            in_run: Unique ids of the nodes that the run builds.
        """
        feed: Feed = self.feed_of(plan)  # type: ignore[attr-defined]
        if not feed.inputs:
            return
        through = sample_read(plan, model, code, feed.inputs, in_run, self.get_macro_resolver())  # type: ignore[attr-defined]
        if through is not None:
            feed.check_sample(plan, selector_of(model), through, rebuilds=rebuilds)


def check_no_sample(target: BaseRelation, source: str, noted: str | None) -> None:
    """Refuse to go on from a table that was built of a sample.

    Args:
        noted: Instant up to which the model has taken it.

    Raises:
        HistoryGapError: What it lacks of the input cannot be told.
    """
    if noted == OF_A_SAMPLE:
        lost = f"{target.render()} was built with --sample, so what it lacks of {source} cannot be told"
        raise HistoryGapError(lost, noted)

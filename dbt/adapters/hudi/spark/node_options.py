"""The options of the node that a thread runs, which count in all that its hooks and macros do to its own table."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_engine.format.config.options import laid_over
from hudi_engine.format.storage.uris import same_place

from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.run import RUNS


class NodeOptions:
    """Options over those of the profile, for the node that dbt is at."""

    def __init__(self, profile: Mapping[str, str]) -> None:
        self._profile = profile

    @property
    def _plan(self) -> ModelPlan | None:
        return RUNS.current().planned

    def at(self, base: str) -> Mapping[str, str]:
        """Return the options of the table at a folder."""
        plan = self._plan
        return self._options(plan is not None and same_place(plan.base, base))

    def named(self, schema: str, name: str) -> Mapping[str, str]:
        """Return the options of the table of a name."""
        plan = self._plan
        own = plan is not None and (plan.schema.lower(), plan.name.lower()) == (schema.lower(), name.lower())
        return self._options(own)

    def _options(self, of_node: bool) -> Mapping[str, str]:
        plan = self._plan
        return laid_over(self._profile, plan.hook_options) if of_node and plan is not None else self._profile

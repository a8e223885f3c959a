"""The options of the node that a thread runs, which count in all that its hooks and macros do to its own table."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from hudi_engine.format.config.options import laid_over
from hudi_engine.format.storage.uris import same_place

from dbt.adapters.hudi.model.plan import ModelPlan


class NodeOptions(threading.local):
    """Options over those of the profile, for the thread's own node."""

    def __init__(self, profile: Mapping[str, str]) -> None:
        self._profile = profile
        self._plan: ModelPlan | None = None

    def begin(self, plan: ModelPlan) -> None:
        """Take the node that the thread runs from now on."""
        self._plan = plan

    def end(self) -> None:
        """Forget the node, which has run."""
        self._plan = None

    def at(self, base: str) -> Mapping[str, str]:
        """Return the options of the table at a folder."""
        return self._options(self._plan is not None and same_place(self._plan.base, base))

    def named(self, schema: str, name: str) -> Mapping[str, str]:
        """Return the options of the table of a name."""
        plan = self._plan
        own = plan is not None and (plan.schema.lower(), plan.name.lower()) == (schema.lower(), name.lower())
        return self._options(own)

    def _options(self, of_node: bool) -> Mapping[str, str]:
        if self._plan is None or not of_node:
            return self._profile
        return laid_over(self._profile, self._plan.hook_options)

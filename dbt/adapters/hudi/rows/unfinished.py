"""First builds that ended between their commit and their name: the commit says whose it is, so that the next run goes on."""

from __future__ import annotations

import hashlib
import os
import socket
from dataclasses import replace

from dbt_common.invocation import get_invocation_id
from hudi_engine.errors import TableNotFoundError
from hudi_engine.format.storage.uris import plain_location
from hudi_engine.spark.jvm.session import hadoop_setting
from hudi_engine.table.inspect.commits import CommitFacts
from hudi_engine.table.state import TableState
from pyspark.sql import SparkSession

from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.model.run_notes import BUILT_AS, INVOCATION
from dbt.adapters.hudi.spark.warehouse import Warehouse

_LOOKED_AT = 8
"""Newest commits among which that of the build is looked for: services commit after it."""
_METASTORE = ("hive.metastore.uris", "javax.jdo.option.ConnectionURL")


def noted_as_built(warehouse: Warehouse, session: SparkSession, plan: ModelPlan) -> ModelPlan:
    """Return the plan of a build whose commit says which relation of which warehouse it is."""
    notes = {**plan.run_notes, BUILT_AS: _relation_of_warehouse(warehouse, session, plan)}
    return replace(plan, run_notes=notes)


def own_build(warehouse: Warehouse, session: SparkSession, plan: ModelPlan) -> tuple[TableState, bool] | None:
    """Return the table in a model's folder where its newest rows are a build of this very model, and whether it came meanwhile.

    It came meanwhile where another run has committed it since this one began. None where the rows are anybody else's, or more
    than those of the build.
    """
    try:
        table = warehouse.table(session, plan.base)
        state = TableState.load(table.storage)
    except TableNotFoundError:
        return None
    newest = next((each for each in table.commits(_LOOKED_AT) if not each.is_service), None)
    if newest is None or newest.extra.get(BUILT_AS) != _relation_of_warehouse(warehouse, session, plan):
        return None
    return state, _came_meanwhile(warehouse, newest)


def _came_meanwhile(warehouse: Warehouse, commit: CommitFacts) -> bool:
    if commit.extra.get(INVOCATION) == get_invocation_id() or commit.committed_at is None:
        return False
    return commit.committed_at >= warehouse.begun


def _relation_of_warehouse(warehouse: Warehouse, session: SparkSession, plan: ModelPlan) -> str:
    """Return the model's name with the place that keeps names; how to get into a metastore is told by a digest."""
    place = plain_location(warehouse.places.location_root)
    if warehouse.directory is None:
        metastore = next((told for key in _METASTORE if (told := hadoop_setting(session, key))), "")
        if not metastore or "derby" in metastore.lower():
            # Spark's own lies in the working directory of this machine, and others have theirs under the same address.
            metastore = f"{metastore} {socket.gethostname()} {os.getcwd()}"
        place = f"{place} hive {hashlib.sha256(metastore.encode()).hexdigest()[:16]}"
    return f"{plan.schema.lower()}.{plan.name.lower()} of {place}"

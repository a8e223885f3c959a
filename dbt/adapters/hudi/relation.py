"""Names of tables, views and sources."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dbt.adapters.base.relation import BaseRelation, EventTimeFilter
from dbt.adapters.spark.relation import SparkRelation
from hudi_engine.format.schema.sql_names import quoted
from hudi_engine.spark.catalog import TableName
from jinja2 import Undefined
from pyspark.sql import SparkSession

from dbt.adapters.hudi.model.source import source_place
from dbt.adapters.hudi.run import RUNS


@dataclass(frozen=True, eq=False, repr=False)
class HudiRelation(SparkRelation):
    """A relation; Hudi tables are always of type table, whatever Spark's catalog holds for them."""

    @classmethod
    def create(cls, database: Any = None, *names: Any, **given: Any) -> Any:
        """Return a relation; an undefined database, as `target.database` of a profile without one, is None."""
        known = None if isinstance(database, Undefined) else database
        return super().create(known, *names, **given)

    @classmethod
    def create_from(cls, quoting: Any, relation_config: Any, **kwargs: Any) -> Any:
        """Return the relation of a node; the use of a source is noted, with the place of its table if it has one."""
        # while dbt parses, a source has no relation name yet and is not used
        used = getattr(relation_config, "relation_name", None)
        if used and getattr(relation_config, "resource_type", None) == "source":
            RUNS.note_source(source_place(relation_config))
        else:
            RUNS.note_selected(relation_config)
        return super().create_from(quoting, relation_config, **kwargs)

    @classmethod
    def create_ephemeral_from(cls, relation_config: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the name of an ephemeral model in the node that selects from it, which uses the model's sources by that."""
        RUNS.note_ephemeral(str(relation_config.unique_id))
        return super().create_ephemeral_from(relation_config, *args, **kwargs)

    def _render_event_time_filtered(self, event_time_filter: EventTimeFilter) -> str:
        # dbt quotes a name as ANSI SQL does, and Spark takes that for a text, which lies in no window
        name = event_time_filter.field_name
        if name.startswith('"') and name.endswith('"'):
            event_time_filter = replace(event_time_filter, field_name=quoted(name[1:-1]))
        return str(super()._render_event_time_filtered(event_time_filter))


def named(relation: BaseRelation) -> TableName:
    """Return the two parts of a relation's name, as Spark's catalog has them."""
    return TableName(relation.schema or "", relation.identifier or "")


def in_session(session: SparkSession, relation: BaseRelation) -> TableName:
    """Return the name of a relation; without a schema it is one of the session's current schema, as in SQL."""
    return TableName(relation.schema or session.catalog.currentDatabase(), relation.identifier or "")

"""What every part of the adapter needs of the whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dbt.adapters.base.meta import AdapterMeta
from dbt.adapters.base.relation import BaseRelation
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.spark.catalog import TableName

from dbt.adapters.hudi.column import HudiColumn
from dbt.adapters.hudi.connections import HudiConnectionManager
from dbt.adapters.hudi.model.merge import own_strategies
from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.relation import named
from dbt.adapters.hudi.spark.errors import dbt_errors


class AdapterPart(metaclass=AdapterMeta):
    """Base of the classes that the adapter is put together of."""

    connections: HudiConnectionManager
    config: Any
    cache: Any
    Relation: Any
    get_macro_resolver: Callable[[], Any]
    get_columns_in_relation: Callable[[BaseRelation], list[HudiColumn]]
    cache_added: Callable[..., Any]
    _relation: Callable[..., BaseRelation]
    _resolve: Callable[[str, str, Mapping[str, Any]], ModelPlan]

    def _macros(self) -> list[Any]:
        # dbt's manifest, of which the protocol has less
        manifest = self.get_macro_resolver()
        return [] if manifest is None else list(manifest.macros.values())

    def _own_strategies(self) -> frozenset[str]:
        return own_strategies(self._macros(), self.config.project_name)

    def _names(self, relation: BaseRelation | str) -> TableName:
        """Return the name of a table that a macro was given."""
        if not isinstance(relation, (str, BaseRelation)) or not str(relation):
            raise DbtRuntimeError(
                f"table is {relation!r}; give the name of a Hudi table, such as 'orders' or 'analytics.orders'"
            )
        if isinstance(relation, str):
            with dbt_errors("find a table"):
                return TableName.parse(relation, self.config.credentials.schema)
        return named(relation)

"""A Hudi table that lies somewhere under a name of the warehouse, from when on models go on with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.hudi.credentials import absolute_location, location_problems
from dbt.adapters.hudi.rows.room import refuse_place_of_another
from dbt.adapters.hudi.spark.folders import same_place
from dbt.adapters.hudi.table_services import TableServiceMethods


@dataclass(frozen=True)
class _Adopted:
    """The table by the name it gets."""

    schema: str
    name: str
    base: str


class AdoptMethods(TableServiceMethods):
    """Names for tables that other writers, or another environment, have left."""

    cache_added: Callable[..., Any]
    _relation: Callable[..., Any]

    @available.parse_none
    def hudi_adopt(self, relation: BaseRelation | str, location: str | None = None) -> str:
        """Give a Hudi table a name; its files stay where and as they are.

        Args:
            relation: The name.
            location: Folder of the table, None for the one that the name says.
        """
        name, warehouse = self._names(relation), self.connections.warehouse
        expected = warehouse.places.default_base(name.database, name.name)
        if location is None:
            base = expected
        elif problems := location_problems(str(location), f"location of {name.label}"):
            raise DbtRuntimeError("; ".join(problems))
        else:
            base = absolute_location(str(location), warehouse.places.project_root).rstrip("/")
        with self.connections.work(f"adopt {name.label}") as session:
            entry = warehouse.entry(session, name.database, name.name)
            if entry is not None and entry.base is not None and same_place(entry.base, base):
                return f"is the table at {base} already"
            if entry is not None:
                raise DbtRuntimeError(f"{name.label} is there already; choose another name, or drop it first")
            refuse_place_of_another(warehouse, session, _Adopted(name.database, name.name, base), None)
            table = warehouse.table(session, base)
            if table.schema is None:
                raise DbtRuntimeError(f"the Hudi table at {base} has no rows or columns yet; build it anew")
            warehouse.create_schema(session, name.database)
            with warehouse.one_writer(session, base):
                if warehouse.directory is not None and not same_place(base, expected):
                    warehouse.directory.save_pointer(name.database.lower(), name.name, base)
                warehouse.register(session, name.database, name.name, table)
        self.cache_added(self._relation(name.database, name.name, True))
        return f"is the table at {base} from now on"

"""A Hudi table that lies somewhere under a name of the warehouse, from when on models go on with it."""

from __future__ import annotations

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.storage.uris import plain_location, same_place
from hudi_engine.table.operations import Answer

from dbt.adapters.hudi.model.locations import absolute_location, location_problems
from dbt.adapters.hudi.rows.existing_target import name_of_place
from dbt.adapters.hudi.table_access import Relation, TableAccess


class AdoptMethods(TableAccess):
    """Names for tables that other writers, or another environment, have left."""

    def hudi_adopt(self, relation: Relation, location: str | None = None) -> Answer:
        """Give a Hudi table a name; its files stay where and as they are.

        Args:
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
        place = plain_location(base)
        with self.connections.work(f"adopt {name.label}") as session:
            entry = warehouse.entry(session, name.database, name.name)
            if entry is not None and entry.foreign:
                raise DbtRuntimeError(
                    f"{name.label} is a source, which is read only and keeps its name; give the table that of the model"
                )
            if entry is not None and entry.base is not None and same_place(entry.base, base):
                return Answer(notes=[f"is the table at {place} already"])
            if entry is not None:
                raise DbtRuntimeError(f"{name.label} is there already; choose another name, or drop it first")
            other = name_of_place(warehouse, session, base, sources=False)
            if other is not None:
                raise DbtRuntimeError(
                    f"{place} is the table {other.label} already, and one table gets one name: let the model have that one by its "
                    f"schema and alias, or rename the table: ALTER TABLE {other.label} RENAME TO ..."
                )
            table = warehouse.table(session, base)
            if table.schema is None:
                raise DbtRuntimeError(f"the Hudi table at {place} has no rows or columns yet; build it")
            warehouse.create_schema(session, name.database)
            with warehouse.one_writer(session, base):
                if warehouse.directory is not None and not same_place(base, expected):
                    warehouse.directory.save_pointer(name.database.lower(), name.name, base)
                warehouse.register(session, name.database, name.name, table)
        self.cache_added(self._relation(name.database, name.name, True))
        return Answer(notes=[f"is the table at {place} from now on"])

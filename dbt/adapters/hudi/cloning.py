"""Clones as methods of the adapter: for ``dbt clone``, for hooks and ``run-operation``."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.storage.given import public_location
from hudi_engine.format.storage.uris import plain_location
from hudi_engine.spark.catalog import TableName
from hudi_engine.table.clone import CloneResult
from hudi_engine.table.operations import Answer

from dbt.adapters.hudi.rows.named_places import NamedPlace, clone_under_name
from dbt.adapters.hudi.run import ModelRun
from dbt.adapters.hudi.table_access import Relation, TableAccess


class CloneMethods(TableAccess):
    """Tables that share the base files of others."""

    @available.parse_none
    def hudi_shares_files(self, original: BaseRelation) -> bool:
        """Whether the clone of a relation is a table; that of a view, or of another table, is a view."""
        name = self._names(original)
        with self.connections.work(f"look up {name.label}") as session:
            entry = self.connections.warehouse.entry(session, name.database, name.name)
        if entry is None:
            there = self.config.credentials
            elsewhere = (
                f" This target finds tables below {there.location_root} only: where the other environment keeps them below "
                "another folder, give both one location_root, or clone by path with `hudi-engine PATH clone`"
                if there.catalog == "directory"
                else ""
            )
            raise DbtRuntimeError(
                f"{name.label} is not there; nothing to clone. Build it in its environment first.{elsewhere}"
            )
        return bool(entry.is_hudi_table)

    @available.parse_none
    def hudi_clone_model(
        self, run: ModelRun, original: BaseRelation, *, replace: bool = False
    ) -> AdapterResponse:
        """Make a model's table a clone of another."""
        plan = run.plan
        place = NamedPlace(TableName(plan.schema, plan.name), plan.base, plan.own_location)
        done = self._clone(original, place, None, replace=replace, copy=plan.clone_copy)
        return AdapterResponse(
            f"CLONE of {self._names(original).label} at {done.instant}: {done.files_shared} files "
            f"({done.bytes_shared} bytes) shared, {done.files_copied} ({done.bytes_copied} bytes) copied"
        )

    def hudi_clone_table(
        self,
        relation: Relation,
        clone: str,
        at: str | None = None,
        replace: bool = False,
        copy: bool = False,
    ) -> Answer:
        """Clone a table under another name of the warehouse, as it is or as it was at an instant or savepoint."""
        name = self._names(clone)
        place = NamedPlace(name, self._base_of_clone(name))
        return Answer(facts=asdict(self._clone(relation, place, at, replace=replace, copy=copy)))

    def _base_of_clone(self, name: TableName) -> str:
        """Return the folder of a clone: that of the table it may replace, else where the name says."""
        warehouse = self.connections.warehouse
        with self.connections.work(f"clone into {name.label}") as session:
            entry = warehouse.entry(session, name.database, name.name)
        if entry is None:
            return warehouse.places.default_base(name.database, name.name)
        if entry.base is None or entry.is_face or entry.foreign:
            raise DbtRuntimeError(
                f"{name.label} is there, and is no Hudi table that a clone could replace; choose another name, or drop it first"
            )
        return plain_location(entry.base)

    def _clone(
        self,
        original: Relation,
        place: NamedPlace,
        at: str | None,
        *,
        replace: bool,
        copy: bool,
    ) -> CloneResult:
        """Clone a table and give the clone its name in the catalog."""
        warehouse, name = self.connections.warehouse, place.name
        with self._table(original, f"clone into {name.label}") as (session, table):
            path = public_location(place.base)
            make = partial(table.services().clone, path, name=name.name, at=at, copy=copy)
            warehouse.create_schema(session, name.database)
            with warehouse.one_writer(session, place.base):
                done = clone_under_name(warehouse, session, place, make, replace=replace)
                if place.own_location and warehouse.directory is not None:
                    warehouse.directory.save_pointer(name.database.lower(), name.name, place.base)
                warehouse.register(session, name.database, name.name, warehouse.table(session, place.base))
        return done

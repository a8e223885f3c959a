"""Schemas and relations for dbt: from Spark's catalog, or from the folders where a command only reads."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import RelationType
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.spark.catalog import DirectoryCatalog, function_names
from hudi_engine.spark.catalog.entry import READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX
from hudi_engine.spark.sql.own_rows import reads_table

from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.model.known_configs import with_meta
from dbt.adapters.hudi.model.selected import as_of_problems, check_nodes
from dbt.adapters.hudi.model.source import given_places
from dbt.adapters.hudi.parts import AdapterPart
from dbt.adapters.hudi.preview import PREVIEW
from dbt.adapters.hudi.relation import named
from dbt.adapters.hudi.run import RUNS
from dbt.adapters.hudi.spark.errors import dbt_errors
from dbt.adapters.hudi.sql.creating import table_clauses


class Names(AdapterPart):
    """The names of a warehouse."""

    def set_macro_resolver(self, macro_resolver: Any) -> None:
        """Take dbt's manifest, which dbt may still be reading: its places are read when the warehouse is opened."""
        super().set_macro_resolver(macro_resolver)  # type: ignore[misc]
        self.connections.warehouse.source_places = lambda: given_places(macro_resolver)

    @property
    def _directory(self) -> DirectoryCatalog | None:
        """The catalog that answers a command which only reads, without Spark; None where Spark answers."""
        return self.connections.warehouse.directory if self.connections.only_looks else None

    def list_schemas(self, database: str | None) -> list[str]:  # noqa: ARG002
        # dbt lists the schemas after it has named the nodes of a run and before anything else needs Spark
        self._check_selected()
        with dbt_errors("list schemas"):
            directory = self._directory
            if directory is not None:
                return sorted({*directory.schemas(), "default"})  # which Spark always has
        with self.connections.work(
            f"list schemas of {self.connections.warehouse.places.location_root}"
        ) as session:
            return self.connections.warehouse.schemas(session)

    def set_relations_cache(self, *given: Any, **named: Any) -> None:
        super().set_relations_cache(*given, **named)  # type: ignore[misc]
        # for its cache dbt names every node of the project, those too that the run leaves out
        RUNS.take_selected()

    def _check_selected(self) -> None:
        nodes = RUNS.take_selected()
        if nodes:
            check_nodes(
                nodes,
                self._macros(),
                lambda node, config: self._resolve(node.schema, node.alias, config),
                self.config.project_name,
            )

    @available.parse_none
    def hudi_check_test(self, model: Mapping[str, Any]) -> None:
        """Refuse a data test whose ``as_of`` a macro of the project would ignore; dbt names no tests before they run."""
        node = SimpleNamespace(
            **{each: model.get(each) for each in ("name", "package_name", "refs", "sources")}
        )
        config = with_meta(model.get("config") or {}, str(node.name))
        problems = as_of_problems(node, config, self._macros(), self.config.project_name)
        if problems:
            raise DbtRuntimeError("\n".join(problems))

    def check_schema_exists(self, database: str | None, schema: str) -> bool:
        return schema.lower() in (name.lower() for name in self.list_schemas(database))

    def create_schema(self, relation: BaseRelation) -> None:
        if PREVIEW.is_on:
            return
        with self.connections.work(f"create schema {relation.schema}") as session:
            self.connections.warehouse.create_schema(session, named(relation).database)

    def drop_schema(self, relation: BaseRelation) -> None:
        if not PREVIEW.runs(f"drop schema {relation}"):
            return
        with self.connections.work(f"drop schema {relation.schema}") as session:
            self.connections.warehouse.drop_schema(session, named(relation).database)
        self.cache.drop_schema(relation.database, relation.schema)

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        # The second names of a merge-on-read table come and go with it. In dbt's cache they would outlive it, and who drops
        # what no model has made would find them.
        return self._relations(named(schema_relation).database, faces=False)

    @available
    def cache_added(self, relation: BaseRelation | None) -> str:
        """Have dbt remember what a name is now; dbt itself would go on with what it remembers of the name."""
        with self.cache.lock:
            if relation is not None and relation.type is not None:
                self.cache.drop(relation)
            return str(super().cache_added(relation))

    @available.parse_none
    def get_relation(self, database: str | None, schema: str, identifier: str) -> BaseRelation | None:
        found: BaseRelation | None = super().get_relation(database, schema, identifier)  # type: ignore[misc]
        if found is not None or not identifier.lower().endswith((READ_OPTIMIZED_SUFFIX, REALTIME_SUFFIX)):
            return found
        known = self._relations(schema)
        return next((each for each in known if str(each.identifier).lower() == identifier.lower()), None)

    def _make_match(
        self,
        relations_list: list[BaseRelation],
        database: str | None,
        schema: str | None,
        identifier: str | None,
    ) -> list[BaseRelation]:
        # Spark's names have no case, also where they are quoted, and are kept in lower case
        wanted = {"database": database, "schema": schema, "identifier": identifier}
        lowered = {part: name.lower() for part, name in wanted.items() if name is not None}
        return [
            each
            for each in relations_list
            if all(str(getattr(each, part) or "").lower() == name for part, name in lowered.items())
        ]

    def _relations(self, schema: str, *, faces: bool = True) -> list[BaseRelation]:
        with dbt_errors(f"list relations of {schema}"):
            directory = self._directory
            if directory is not None:
                known = directory.names(schema.lower(), faces=faces)
                return [
                    self._relation(name.database, name.name, base is not None) for name, base in known.items()
                ]
        with self.connections.work(f"list relations of {schema}") as session:
            entries = self.connections.warehouse.entries(session, schema)
            made = sorted(function_names(session, schema))
        return [
            *(
                self._relation(
                    entry.name.database, entry.name.name, entry.is_hudi_table, not entry.reads_only
                )
                for entry in entries
                if faces or not entry.is_face
            ),
            *(self._of_type(schema, name, RelationType.Function) for name in made),
        ]

    def _relation(self, schema: str, name: str, is_hudi: bool, is_table: bool | None = None) -> BaseRelation:
        holds_rows = is_hudi if is_table is None else is_table
        kind = RelationType.Table if holds_rows else RelationType.View
        return self._of_type(schema, name, kind, is_hudi=is_hudi or None)

    def _of_type(self, schema: str, name: str, kind: RelationType, **more: Any) -> BaseRelation:
        # as Spark keeps it
        found: BaseRelation = self.Relation.create(schema=schema.lower(), identifier=name, type=kind, **more)
        return found

    @available.parse(lambda *_, **__: False)
    def is_hudi_table(self, relation: BaseRelation | None) -> bool:
        """Whether a relation is a Hudi table, by the catalog and not by what dbt remembers of it."""
        if relation is None:
            return False
        with self.connections.work(f"look up {relation}") as session:
            name = named(relation)
            entry = self.connections.warehouse.entry(session, name.database, name.name)
        return entry is not None and entry.is_hudi_table

    @available.parse(lambda *_, **__: "")
    def hudi_table_clauses(self, relation: BaseRelation, model: Mapping[str, Any]) -> str:
        """Return the SQL clauses of a node's table, from its configs."""
        name = named(relation)
        plan = self._resolve(name.database, name.name, self._config_of(model))
        if plan.audit:
            logger.warning(
                "{} is made by SQL of a materialization of the project's own, which no tests can stop: they run after it",
                relation.render(),
            )
        return table_clauses(plan)

    @available.parse_none
    def hudi_end_trial(self, trial: BaseRelation, table: BaseRelation) -> None:
        """Drop the view that `hudi_try_view` made, and refuse a query that reads the table whose place its view is to take."""
        tried, name = named(trial), named(table)
        with self.connections.work(f"try the view {name.label}") as session:
            try:
                reads_it = reads_table(session.table(tried.sql), name)
            finally:
                self.connections.warehouse.drop(session, tried.database, tried.name)
        if reads_it:
            raise DbtRuntimeError(
                f"{name.label} is a table and is to become a view that reads it, and so would read itself: the table stays. Give "
                "the model another alias, or let its query read where the rows come from"
            )

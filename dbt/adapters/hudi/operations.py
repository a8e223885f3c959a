"""Operations on a table for hooks and ``run-operation``: a view of the engine's, with those that need a warehouse.

An operation that only looks, or has ``dry_run``, is answered without Spark where the folders know the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.events.contextvars import get_node_info
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.errors import ConfigError, HudiError, TableNotFoundError, UnsupportedTableError
from hudi_engine.format.config.declared.service_options import ServiceOptions
from hudi_engine.format.config.options import laid_over, resolve_options
from hudi_engine.format.storage import open_storage
from hudi_engine.format.storage.given import public_location
from hudi_engine.format.storage.uris import plain_location, same_place
from hudi_engine.format.timeline.rolled_back import names_of
from hudi_engine.spark.catalog import TableName
from hudi_engine.spark.sql.own_rows import shown_for_condition
from hudi_engine.spark.sql.statement import Target
from hudi_engine.table.changes.checkpoint import read_checkpoint
from hudi_engine.table.clone import CloneResult
from hudi_engine.table.operations import OPERATIONS, Answer, Call, Operation, as_line, as_text
from hudi_engine.table.operations.procedures import call_procedure, find_procedure
from hudi_engine.table.report import default_name
from hudi_engine.table.state import TableState
from hudi_engine.table.table_services import TableServices
from jinja2 import Undefined

from dbt.adapters.hudi.changes.methods import ChangeFeeds
from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.model.reading import absolute_location, location_problems
from dbt.adapters.hudi.parts import Relation, TableAccess
from dbt.adapters.hudi.preview import PREVIEW
from dbt.adapters.hudi.rows.existing_target import NamedPlace, clone_under_name, name_of_place
from dbt.adapters.hudi.run import ModelRun
from dbt.adapters.hudi.spark.errors import dbt_errors

Given = Mapping[str, Any]
_NO = {
    "validate": "validation failed: timeline and files do not agree; hudi_repair with dry_run shows what it would do",
    "verify": "the rows of the table are not those that its commits have written",
    "diff": "the tables differ",
}
"""What it means when the answer of an operation is no."""
# Errors of a call; others mean that the service failed.
_CALL_ERRORS = (ConfigError, TableNotFoundError, UnsupportedTableError)


def _bound(
    name: str, given: Given, others: Given
) -> tuple[Operation, Relation, dict[str, Any], dict[str, str]]:
    """Return an operation, its table, its arguments in their types, and the options of the call."""
    own = _OWN.get(name)
    operation = own or OPERATIONS[name.removeprefix("show_")]
    arguments = {
        key: None if isinstance(each, Undefined) else each for key, each in {**given, **others}.items()
    }
    relation, options = arguments.pop("table", None), arguments.pop("options", None)
    more = () if own else ("options",)
    with dbt_errors(name):
        bound = operation.bind(arguments, f"hudi_{name}", more)
        if relation is None:
            legal = ", ".join((*operation.names, *more))
            raise ConfigError(
                f"hudi_{name} needs table, and got none or a name that nothing defines; its arguments: {legal}"
            )
        return operation, relation, bound, _options(options)


def _checked(name: str, given: Given, others: Given) -> list[str]:
    """Check the arguments while dbt parses; those that a query gives are empty then, and are checked when the hook runs."""
    arguments = {**given, **others}
    empty = {key for key, value in arguments.items() if value is None or value in ("", [], ())}
    operation = _OWN.get(name) or OPERATIONS[name.removeprefix("show_")]
    if empty.isdisjoint(operation.required):
        _bound(name, {key: value for key, value in arguments.items() if key not in empty}, {})
    return []


class Operations(TableAccess):
    """Operations on tables."""

    @available.parse(_checked)
    def hudi_operation(self, name: str, given: Given, others: Given) -> list[str]:
        """Run an operation, and return what it did as lines.

        Args:
            name: Of the engine's operations or of this adapter's, as in the macro ``hudi_<name>``.
        """
        operation, relation, bound, options = _bound(name, given, others)
        if PREVIEW.is_on and not operation.only_looks(bound):
            if not operation.is_service:
                PREVIEW.leave_out(f"hudi_{name}", f"{relation} {bound}")
            return [f"{name} of {relation}: not run, as this run is planned"]
        label = f"{name.removeprefix('show_').replace('_', ' ')} of {relation}"
        if name in _OWN:
            return _lines(label, operation.execute(self, relation, **bound))
        if name == "report":
            bound["output"] = str(self._report_path(self._names(relation), bound.get("output")))
        undone: list[str] = []
        if operation.only_looks(bound) and bound.get("where") is None:
            with self._look(relation, label, options) as services:
                if name == "restore":
                    undone = self._gap_left(relation, services, bound)
                answer = operation.execute(Call(services, options), **bound)
        elif operation.is_service:
            return self._service(operation, relation, bound, options)
        else:
            with self._changed(relation, label) as table:
                if name == "restore":
                    undone = self._gap_left(relation, table.services(options), bound)
                answer = operation.execute(Call(table.services(options), options), **bound)
        return self._raise_if_no(name, [*_lines(label, answer), *undone], answer)

    def _gap_left(self, relation: Relation, services: TableServices, bound: Given) -> list[str]:
        """Return a line that names the models of this warehouse which have taken changes that a restore removes."""
        try:
            removed = {time for time, _ in services.would_be_undone(bound["instant"])}
        except HudiError:  # which the restore itself raises
            return []
        label = self._names(relation).label.lower()
        gap = gap_left(
            {label: (TableState.load(services.storage), removed)}, self._states() if removed else ()
        )
        return [f"  {gap}"] if gap else []

    def _states(self) -> Iterator[tuple[TableName, TableState]]:
        """Give the Hudi tables of the warehouse that can be read."""
        for name, base in self._hudi_tables():
            with suppress(HudiError):
                yield name, TableState.load(open_storage(base))

    def _hudi_tables(self) -> list[tuple[TableName, str]]:
        """Return the Hudi tables of the warehouse with their folders, those that cannot be read too."""
        warehouse = self.connections.warehouse
        if warehouse.directory is not None:
            schemas = warehouse.directory.schemas()
            return [found for each in schemas for found in warehouse.directory.tables(each).items()]
        with self.connections.work("list the tables") as session:
            entries = [
                each for schema in warehouse.schemas(session) for each in warehouse.entries(session, schema)
            ]
        return [(each.name, each.base) for each in entries if each.is_hudi_table and each.base is not None]

    @available.parse_list
    def hudi_call(self, procedure: str, given: Given) -> list[str]:
        """Run one of Hudi's CALL procedures, and return its rows as lines."""
        arguments = {name.lower(): value for name, value in given.items()}  # of any case, as in SQL
        relation, label = arguments.pop("table", None), f"{procedure} of {given.get('table')}"
        with dbt_errors(label):
            found = find_procedure(procedure)
            found.bind(arguments)
        if PREVIEW.is_on and found.changes:
            PREVIEW.leave_out(f"CALL {procedure}", str(given))
            return [f"{label}: not run, as this run is planned"]
        if not found.changes:
            with self._look(relation, label, {}) as services:
                return _lines(label, call_procedure(found, services, arguments))
        with self._changed(relation, label) as table:
            return _lines(label, call_procedure(found, table.services(), arguments))

    # --- operations that need a warehouse -----------------------------------------------------------------------

    def hudi_adopt(self, relation: Relation, location: str | None = None) -> Answer:
        """Give a Hudi table a name; its files stay where and as they are.

        Args:
            location: Folder of the table, None for that of the name.
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
        """Return the folder of a clone: that of the table it may replace, else that of its name."""
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

    def hudi_soft_delete(self, relation: Relation, where: str) -> Answer:
        """Set all but key, ordering and partition columns of the rows that fulfil a condition to null."""
        if not isinstance(where, str) or not where.strip():
            raise DbtRuntimeError(
                f'where is {where!r}; give a condition in SQL, as text: {{where: "id = 1"}}'
            )
        with self._changed(relation, "soft delete in") as table:
            warehouse, name = self.connections.warehouse, self._names(relation)
            itself = Target(name.database, name.name, table.path, None, is_face=False)
            read = shown_for_condition(warehouse, table.spark, itself, [where])
            done = table.as_read(read).soft_delete_where(where)
        return Answer(facts={"instant": done.instant, "rows": done.rows_updated})

    def _service(
        self, operation: Operation, relation: Relation, bound: Given, options: dict[str, str]
    ) -> list[str]:
        """Run a table service; as the hook of a node one that fails is a warning, for the node's commit is good."""
        warehouse, name = self.connections.warehouse, self._names(relation)
        what, failed = operation.name, ""
        with dbt_errors(f"{what} {name.label}"):
            known = warehouse.options_of(name.database, name.name)
            is_strict = resolve_options(laid_over(known, options))[ServiceOptions.STRICT]
        with self._changed(relation, what) as table:
            try:
                answer = operation.execute(Call(table.services(options), options), **bound)
            except HudiError as error:
                if isinstance(error, _CALL_ERRORS) or is_strict or not get_node_info().get("unique_id"):
                    raise
                failed = f"{type(error).__name__}: {error}"
        if failed:
            logger.warning("{} {} failed; the commit before it is complete: {}", what, name.label, failed)
            return [f"{what} of {relation}: FAILED: {failed}"]
        return _lines(f"{what} of {relation}", answer)

    def _raise_if_no(self, name: str, lines: list[str], answer: Answer) -> list[str]:
        if not answer.ok:
            found = "\n".join(lines)
            raise DbtRuntimeError(f"{_NO[name]}.\n{found}")
        return lines

    def _report_path(self, name: TableName, output: str | None) -> Path:
        """Return where a page goes: a relative file counts from the project; without one it goes to dbt's target folder."""
        root = Path(self.config.project_root)
        if output:
            return root / output
        folder = root / str(self.config.target_path) / "hudi_reports"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / default_name(f"{name.database}-{name.name}")


def gap_left(
    removed: Mapping[str, tuple[TableState, Collection[str]]], readers: Iterable[tuple[TableName, TableState]]
) -> str:
    """Return what becomes of tables that have taken changes which go; ``""`` where none has.

    Args:
        removed: By schema and name in lower case, a table and those of its instants that go.
    """
    going = {
        label: {
            name
            for each in state.timeline.completed_writes
            if each.requested_time in times
            for name in names_of(each)
        }
        for label, (state, times) in removed.items()
    }
    found = []
    for name, reader in readers:
        with suppress(HudiError):  # a note that cannot be read keeps nothing from being restored
            noted = read_checkpoint(reader)
            if any(noted.get(label) in names for label, names in going.items()):
                found.append(name.label)
    if not found:
        return ""
    return (
        f"{', '.join(sorted(found))} has taken changes that are removed: the next run stops with a gap in the history, unless "
        "hudi_changes() has on_gap='compare' or it is run with --full-refresh"
    )


def _lines(label: str, answer: Answer) -> list[str]:
    """Return an answer as dbt prints it: what fits in one line behind its label, a table below it."""
    lines = as_text(answer).splitlines()
    if not answer.rows and (answer.facts or answer.reason):
        lines = [as_line(answer), *answer.notes]
    if len(lines) == 1:
        return [f"{label}: {lines[0]}"]
    return [f"{label}:", *(f"  {line}" for line in lines)]


def _options(options: Any) -> dict[str, str]:
    if options is not None and not isinstance(options, Mapping):
        raise ConfigError(
            f"options is {options!r}; give a mapping such as {{hoodie.compaction.target.io: 1024}}"
        )
    return {
        str(key): str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in (options or {}).items()
    }


_OWN: Mapping[str, Operation] = {
    "adopt": Operation(Operations.hudi_adopt, before=2),
    "clone": Operation(Operations.hudi_clone_table, before=2),
    "soft_delete": Operation(Operations.hudi_soft_delete, before=2),
    "checkpoint": Operation(ChangeFeeds.hudi_checkpoint, before=2),
}
"""Operations that need a warehouse: methods of the adapter that take a relation."""

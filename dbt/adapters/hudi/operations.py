"""Operations on a table for hooks and ``run-operation``: a view of the engine's, with those that need a warehouse.

An operation that only looks, or has ``dry_run``, is answered without Spark where the folders know the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbt.adapters.base.meta import available
from dbt_common.events.contextvars import get_node_info
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.errors import ConfigError, HudiError, TableNotFoundError, UnsupportedTableError
from hudi_engine.format.config.declared.service_options import ServiceOptions
from hudi_engine.format.config.options import laid_over, resolve_options
from hudi_engine.spark.catalog import TableName
from hudi_engine.spark.sql.own_rows import shown_for_condition
from hudi_engine.spark.sql.statement import Target
from hudi_engine.table.operations import OPERATIONS, Answer, Call, Operation, as_line, as_text
from hudi_engine.table.operations.procedures import call_procedure, find_procedure
from hudi_engine.table.report import default_name
from jinja2 import Undefined

from dbt.adapters.hudi.adopting import AdoptMethods
from dbt.adapters.hudi.cloning import CloneMethods
from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.spark.errors import dbt_errors
from dbt.adapters.hudi.table_access import Relation

Given = Mapping[str, Any]
# These say that a call makes no sense; the other errors, that the service failed.
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


class Operations(CloneMethods, AdoptMethods):
    """Operations on tables."""

    @available.parse(_checked)
    def hudi_operation(self, name: str, given: Given, others: Given) -> list[str]:
        """Run an operation, and return what it did as lines.

        Args:
            name: Of the engine's operations or of this adapter's, as in the macro ``hudi_<name>``.
        """
        operation, relation, bound, options = _bound(name, given, others)
        label = f"{name.removeprefix('show_').replace('_', ' ')} of {relation}"
        if name in _OWN:
            return _lines(label, operation.execute(self, relation, **bound))
        if name == "report":
            bound["output"] = str(self._report_path(self._names(relation), bound.get("output")))
        if operation.only_looks(bound) and bound.get("where") is None:
            with self._look(relation, label, options) as services:
                answer = operation.execute(Call(services, options), **bound)
        elif operation.is_service:
            return self._service(operation, relation, bound, options)
        else:
            with self._changed(relation, label) as table:
                answer = operation.execute(Call(table.services(options), options), **bound)
        return self._raise_if_corrupt(_lines(label, answer), answer)

    @available.parse_list
    def hudi_call(self, procedure: str, given: Given) -> list[str]:
        """Run one of Hudi's CALL procedures, and return its rows as lines."""
        arguments = dict(given)
        relation, label = arguments.pop("table", None), f"{procedure} of {given.get('table')}"
        with dbt_errors(label):
            found = find_procedure(procedure)
            found.bind(arguments)
        if not found.changes:
            with self._look(relation, label, {}) as services:
                return _lines(label, call_procedure(found, services, arguments))
        with self._changed(relation, label) as table:
            return _lines(label, call_procedure(found, table.services(), arguments))

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

    def _checkpoint(
        self, relation: Relation, input: str | None = None, set: str | None = None, reset: bool = False
    ) -> Answer:
        """Show, set or reset how far a model has consumed its inputs."""
        noted = self.hudi_checkpoint(relation, input, set, reset)  # type: ignore[attr-defined]
        lines = noted or ["none; a model with hudi_changes takes all rows in its next run"]
        readers = self.hudi_consumers(relation)  # type: ignore[attr-defined]
        if readers:
            head = "consumers (reader, last instant consumed), whose changes clean and archive spare:"
            lines = [*lines, head, *readers]
        return Answer(notes=lines)

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
            logger.warning("{} {} failed, its commit stands: {}", what, name.label, failed)
            return [f"{what} of {relation}: FAILED: {failed}"]
        return _lines(f"{what} of {relation}", answer)

    def _raise_if_corrupt(self, lines: list[str], answer: Answer) -> list[str]:
        if not answer.ok:
            found = "\n".join(lines)
            raise DbtRuntimeError(
                f"validation failed: timeline and files do not agree; hudi_repair says with dry_run what it would do.\n{found}"
            )
        return lines

    def _report_path(self, name: TableName, output: str | None) -> Path:
        """Return where a page goes: a relative file counts from the project; without one it goes to dbt's target folder."""
        root = Path(self.config.project_root)
        if output:
            return root / output
        folder = root / str(self.config.target_path) / "hudi_reports"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / default_name(f"{name.database}-{name.name}")


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
    "checkpoint": Operation(Operations._checkpoint, before=2),
}
"""Operations that need a warehouse: methods of the adapter that take a relation."""

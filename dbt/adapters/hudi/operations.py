"""Operations on a table for hooks and ``run-operation``: looking, saving, going back, deleting partitions, repairing.

What is looked at are the answers of the engine's command line, so both say the same. What destroys says with ``dry_run``
what would go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine import HudiTable
from hudi_engine.cli.ask import ask
from hudi_engine.format.layout.layout import split_names
from hudi_engine.spark.catalog import TableName
from hudi_engine.spark.sql.own_rows import shown_for_condition
from hudi_engine.spark.sql.statement import Target
from hudi_engine.spark.write.metadata_only import partitions_there
from hudi_engine.table.inspect import partition_facts
from hudi_engine.table.repair import Repair
from hudi_engine.table.report import default_name, write_report
from hudi_engine.table.state import TableState

from dbt.adapters.hudi.adopting import AdoptMethods
from dbt.adapters.hudi.cloning import CloneMethods
from dbt.adapters.hudi.table_services import listed


class Operations(CloneMethods, AdoptMethods):
    """What one can see of a table and do to it, beside its services."""

    @available.parse(lambda *_, **__: {"lines": [], "ok": True})
    def hudi_look(
        self, relation: BaseRelation | str, what: str, given: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Lines that answer a look, and whether the answer is yes.

        Args:
            what: A command of ``hudi-engine`` that only looks.
        """
        with self._look(relation, f"{what} of") as services:
            lines, ok = ask(services, what, given or {})
        return {"lines": lines, "ok": ok}

    @available.parse_none
    def hudi_refuse_harm(self, relation: BaseRelation | str, ok: bool) -> None:
        """Fail an operation that found harm, which was said in the lines before.

        Raises:
            DbtRuntimeError: There is.
        """
        if not ok:
            raise DbtRuntimeError(
                f"timeline and files of {self._names(relation).label} do not agree; what was found is in the lines above, and "
                "hudi_repair says with dry_run what it would do about it"
            )

    @available.parse_none
    def hudi_report(
        self, relation: BaseRelation | str, output: str | None = None, count: bool = False
    ) -> str:
        """Write a page about a table; a relative file counts from the project, and without one it goes to dbt's target folder."""
        name = self._names(relation)
        root = Path(self.config.project_root)
        own = root / self.config.target_path / "hudi_reports"
        if not output:
            own.mkdir(parents=True, exist_ok=True)
        chosen = root / output if output else own / _page_name(name)
        with self._look(relation, "report on") as services:
            state = TableState.load(services.storage)
            return str(write_report(state, services.options, chosen, count_rows=count).path)

    @available.parse_none
    def hudi_savepoint(
        self, relation: BaseRelation | str, instant: str | None = None, user: str = "", comments: str = ""
    ) -> str:
        """Keep a commit, the newest when none is named."""
        chosen = None if instant is None else str(instant)
        with self._look(relation, "savepoint of") as services:
            saved = services.savepoint(chosen, user=user, comments=comments)
        return f"SAVEPOINT of {saved.instant}, {sum(map(len, saved.files.values()))} files"

    @available.parse_none
    def hudi_delete_savepoint(self, relation: BaseRelation | str, instant: str) -> str:
        """Give a saved commit free to clean."""
        with self._look(relation, "delete the savepoint of") as services:
            saved = services.delete_savepoint(str(instant))
        return f"SAVEPOINT of {saved} deleted"

    @available.parse_none
    def hudi_restore(self, relation: BaseRelation | str, instant: str, *, dry_run: bool = False) -> str:
        """Take a table back to a commit, named by its instant or by its savepoint's comment; every later write goes."""
        if dry_run:
            with self._look(relation, "restore") as services:
                going = services.would_be_undone(str(instant))
            return listed("instants would go", [f"{time}  {action}" for time, action in going])

        def run(table: HudiTable) -> AdapterResponse:
            done = table.restore(str(instant))
            return AdapterResponse(
                f"RESTORE to {done.target}, {len(done.taken_back)} later instants taken back"
            )

        return str(self._change(relation, "restore", run))

    @available.parse_none
    def hudi_delete_partitions(
        self, relation: BaseRelation | str, partitions: Sequence[str] | str, *, dry_run: bool = False
    ) -> str:
        """Remove partitions as one commit; in a text they have commas between."""
        given = partitions
        partitions = split_names(partitions) if isinstance(partitions, str) else partitions
        if not partitions:
            raise DbtRuntimeError(
                f"partitions is {given!r}; give a list of partition paths such as ['day=2026-01-01']"
            )
        if dry_run:
            with self._look(relation, "delete partitions of") as services:
                state = TableState.load(services.storage)
                found = partition_facts(state.view(partitions_there(state, partitions)).latest_slices())
            return listed(
                "partitions would go", [f"{each.partition}  {each.file_groups} file groups" for each in found]
            )

        def run(table: HudiTable) -> AdapterResponse:
            done = table.delete_partitions(list(partitions))
            return AdapterResponse(f"DELETE PARTITIONS of {len(partitions)}, instant {done.instant}")

        return str(self._change(relation, "delete partitions of", run))

    @available.parse_none
    def hudi_soft_delete(self, relation: BaseRelation | str, where: str) -> str:
        """Set all but key, ordering and partition columns of the rows that fulfil a condition to null."""
        if not isinstance(where, str) or not where.strip():
            raise DbtRuntimeError(
                f'where is {where!r}; give a condition in SQL, as text: {{where: "id = 1"}}'
            )

        def run(table: HudiTable) -> AdapterResponse:
            warehouse, name = self.connections.warehouse, self._names(relation)
            itself = Target(name.database, name.name, table.path, None, is_face=False)
            read = shown_for_condition(warehouse, table.spark, itself, [where])
            done = table.as_read(read).soft_delete_where(where)
            return AdapterResponse(f"SOFT DELETE of {done.rows_updated} rows, instant {done.instant}")

        return str(self._change(relation, "soft delete in", run))

    @available.parse_none
    def hudi_repair(
        self,
        relation: BaseRelation | str,
        kinds: Sequence[str] | str | None = None,
        *,
        dry_run: bool = True,
        partitions: Sequence[str] | str | None = None,
    ) -> str:
        """Repair what a look finds; only say what would be done unless ``dry_run`` is false."""
        chosen, within = _names(kinds), _names(partitions)
        if dry_run:
            with self._look(relation, "repair") as services:
                found = services.repair(chosen, partitions=within)
            return _repairs("repairs would be made", found)

        def run(table: HudiTable) -> AdapterResponse:
            return AdapterResponse(
                _repairs("repairs made", table.repair(chosen, dry_run=False, partitions=within))
            )

        return str(self._change(relation, "repair", run))


def _names(given: Sequence[str] | str | None) -> tuple[str, ...] | None:
    return None if given is None else (given,) if isinstance(given, str) else tuple(given)


def _repairs(what: str, found: Sequence[Repair]) -> str:
    return listed(what, [f"{each.path or 'the table'}: {each.done}" for each in found])


def _page_name(name: TableName) -> str:
    return default_name(f"{name.database}-{name.name}")

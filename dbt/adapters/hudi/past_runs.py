"""What earlier dbt runs wrote, from the timelines of the tables, and taking such a run back."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.errors import HudiError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.own_keys import CLONE_OF, REPLACED_TABLE
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.storage import open_storage
from hudi_engine.spark.catalog import TableName
from hudi_engine.table.inspect import CommitFacts, commit_facts
from hudi_engine.table.operations import Answer
from hudi_engine.table.state import TableState
from hudi_engine.table.table_services import TableServices

from dbt.adapters.hudi.model.run_notes import INPUTS, INVOCATION, NODE
from dbt.adapters.hudi.model.selected import tables_named
from dbt.adapters.hudi.operations import Operations, gap_left
from dbt.adapters.hudi.response import counted
from dbt.adapters.hudi.spark.errors import dbt_errors

UNFINISHED = ".dbt_hudi_undo.json"
"""File below ``location_root`` while a run is taken back: the run and its tables; it goes when all of them are back."""


@dataclass(frozen=True)
class PastTable:
    """A table as it is, with all that its timeline has.

    Args:
        commits: Of the active timeline, newest first.
        restoring: A restore of it was cut off, which the next write or restore finishes.
    """

    name: TableName
    base: str
    state: TableState
    commits: tuple[CommitFacts, ...]
    restoring: bool = False

    @classmethod
    def load(cls, name: TableName, base: str) -> PastTable:
        """Look at a table; raises HudiError or OSError for one that cannot be read."""
        state = TableState.load(open_storage(base))
        orders = {each.requested_time: each.order for each in state.timeline.completed_writes}
        found = sorted(commit_facts(state), key=lambda each: orders[each.instant], reverse=True)
        restoring = any(each.action == "restore" for each in state.timeline.pending)
        return cls(name, base, state, tuple(found), restoring)

    def runs(self) -> dict[str, list[CommitFacts]]:
        """Return the commits of each run, by its invocation id; a clone has those of its original, which are none of its own."""
        found: dict[str, list[CommitFacts]] = {}
        until = self.state.config.properties.get(CLONE_OF, "")
        for each in self.commits:
            run = each.extra.get(INVOCATION)
            if run and each.instant > until:
                found.setdefault(run, []).append(each)
        return found

    @property
    def label(self) -> str:
        """Schema and name in lower case."""
        return self.name.label.lower()


@dataclass(frozen=True)
class Undoing:
    """What becomes of one table when a run is taken back.

    Args:
        own: The commits of the run, newest first.
        target: The instant before them; None where the run made the table, which is dropped then.
        others: Later commits that are none of the run's and no service's, newest first.
        since: Those of them that are newer than a cut-off undo of the run, which did not ask about them.
        problem: Why the table cannot go back; ``""`` if it can.
    """

    table: PastTable
    own: tuple[CommitFacts, ...]
    target: str | None
    others: tuple[CommitFacts, ...] = ()
    since: tuple[CommitFacts, ...] = ()
    problem: str = ""

    @classmethod
    def of(cls, table: PastTable, run: str) -> Undoing | None:
        """Return what taking a run back does to a table; None for one that the run has not written."""
        own = table.runs().get(run)
        if not own:
            return None
        places = [each.instant for each in table.commits]
        first = places.index(own[-1].instant)
        later, before = table.commits[:first], table.commits[first + 1 :]
        mine = {each.instant for each in own}
        others = tuple(each for each in later if each.instant not in mine and not each.is_service)
        found = cls(table, tuple(own), before[0].instant if before else None, others)
        return replace(found, problem=found._why_not())

    @property
    def does(self) -> str:
        """What is done to the table."""
        if self.problem:
            return "not undone"
        return "dropped" if self.target is None else f"restored to {self.target}"

    def cells(self) -> dict[str, Any]:
        """Return a row of the list of what would go."""
        return {
            "table": self.table.name.label,
            "would be": self.does,
            "commits": len(self.own),
            **sums(self.own),
            "later commits of others": len(self.others),
        }

    def _why_not(self) -> str:
        state = self.table.state
        if self.table.restoring:
            return ""
        if self.target is not None:
            services = TableServices(state.storage, resolve_options({}))
            try:
                services.would_be_undone(self.target)
            except HudiError as error:
                return str(error)
            return ""
        replaced = self.own[-1].extra.get(REPLACED_TABLE)
        if replaced is not None:
            return (
                "the run has rebuilt it with another key, partitioning, type or format, and the table of before is gone; build it "
                "again by its code of before, or leave it out with --exclude"
            )
        if state.timeline.archived.completed_writes:
            return "the write before the run is in the archive, and only writes of the active timeline can be restored"
        return ""


def sums(commits: Iterable[CommitFacts]) -> dict[str, int]:
    """Return how many rows some commits inserted, updated and deleted."""
    listed = list(commits)
    return {
        name: sum(getattr(each, name) for each in listed)
        for name in ("rows_inserted", "rows_updated", "rows_deleted")
    }


@dataclass(frozen=True)
class UndoPlan:
    """What taking a run back does, tables that read others first.

    Args:
        tables: Those that are written back or dropped.
        way_out: How an undo of this run that was cut off is given up; ``""`` where none was.
        gap: What becomes of other tables, which have taken changes of theirs that go; ``""`` where none has.
        unreadable: Tables that may have commits of the run and cannot be read, each with the error.
        readers: Other tables whose runs have read rows that go.
    """

    run: str
    tables: tuple[Undoing, ...]
    way_out: str = ""
    gap: str = ""
    unreadable: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()

    def problems(self, *, force: bool) -> list[str]:
        """Return why it cannot be carried out; later commits of others are none with ``force``."""
        found = [
            f"{each}; whether the run has written it is not known: repair or drop it, or leave it out with --exclude"
            for each in self.unreadable
        ]
        found += [f"{each.table.name.label}: {each.problem}" for each in self.tables if each.problem]
        for each in self.tables:
            if each.since:
                found.append(
                    f"{each.table.name.label}: committed to since the undo began: {', '.join(map(_who, each.since[:3]))}"
                )
            elif each.others and not force and not (self.way_out and each.table.restoring):
                who = ", ".join(_who(other) for other in each.others[:3])
                found.append(
                    f"{each.table.name.label}: {counted(len(each.others), 'later commit')} of others would go too ({who}); undo "
                    "those runs first, leave the table out with --exclude, or give --force"
                )
        return found

    def check(self, *, force: bool) -> None:
        """Raise DbtRuntimeError, with all `problems`, if it cannot be carried out."""
        if problems := [f"  {each}" for each in self.problems(force=force)]:
            lines = ["the run cannot be undone; nothing was changed:", *problems, self.way_out]
            raise DbtRuntimeError("\n".join(lines).rstrip())

    def answer(self) -> Answer:
        """Return the list of what would go."""
        notes = [f"run {self.run}"]
        if self.way_out:
            notes.append("its undo was cut off, and is finished")
        if self.gap:
            notes.append(self.gap)
        if self.readers:
            notes.append(
                f"built from rows that go, and left as they are: {', '.join(self.readers)}; run them again afterwards"
            )
        return Answer([each.cells() for each in self.tables], {}, notes)


def _who(commit: CommitFacts) -> str:
    run = commit.extra.get(INVOCATION)
    return f"{commit.operation} {commit.instant}" + (f" of run {run}" if run else "")


class PastRuns(Operations):
    """Runs of dbt that the tables of a warehouse know of."""

    def inputs_of(self, model: Mapping[str, Any]) -> dict[str, str]:
        """Return the newest instant of each Hudi table that a node refers to; none where finding it would take Spark."""
        warehouse, manifest = self.connections.warehouse, self.get_macro_resolver()
        if warehouse.directory is None or manifest is None or (model.get("config") or {}).get("as_of"):
            return {}
        tables = sorted(tables_named(model, manifest))
        newest = on_threads(self._newest_of, tables)
        return {table: instant for table, instant in zip(tables, newest, strict=True) if instant is not None}

    def _newest_of(self, table: str) -> str | None:
        with suppress(HudiError, OSError):  # a note is no reason to fail
            storage = self.connections.warehouse.storage_on_disk(*table.split(".", 1))
            writes = () if storage is None else TableState.load(storage).timeline.completed_writes
            return writes[-1].requested_time if writes else None
        return None

    def past_tables(self) -> tuple[list[PastTable], dict[str, str]]:
        """Return the Hudi tables of the warehouse, and by schema and name in lower case why others cannot be read."""

        def look(named: tuple[TableName, str]) -> PastTable | tuple[str, str]:
            try:
                return PastTable.load(*named)
            except (HudiError, OSError) as error:
                label = named[0].label
                return label.lower(), f"{label} cannot be read: {error}"

        with dbt_errors("read the runs of the tables"):
            found = on_threads(look, self._hudi_tables())
        tables = [each for each in found if isinstance(each, PastTable)]
        return tables, dict(each for each in found if not isinstance(each, PastTable))

    def hudi_runs(self, run: str | None = None, limit: int = 20, *, all_schemas: bool = False) -> Answer:
        """List the runs that the active timelines have commits of, newest first.

        Args:
            run: The only one, of which each table is listed; the beginning of its invocation id.
            limit: How many; 0 for all.
            all_schemas: Also those that wrote no table in a schema of the target.
        """
        tables, unreadable = self.past_tables()
        found, notes = self._runs_of(tables, all_schemas=all_schemas), [*unreadable.values()]
        if run is not None:
            rows = []
            for label, commits in sorted(found[_run_named(found, run)].items()):
                cells = {"table": label, "model": commits[0].extra.get(NODE), "commits": len(commits)}
                rows.append({**cells, **sums(commits), **_times(commits), "newest": commits[0].instant})
            return Answer(rows, notes=notes)
        rows = []
        for each, written in found.items():
            commits = [commit for own in written.values() for commit in own]
            schemas = (
                {"schemas": ", ".join(sorted({_schema_of(label) for label in written}))}
                if all_schemas
                else {}
            )
            rows.append({"run": each, **schemas, **_times(commits), "tables": len(written), **sums(commits)})
        return Answer(rows[: limit or None], notes=notes if rows else [*notes, _no_run(all_schemas)])

    def _runs_of(
        self, tables: Iterable[PastTable], *, all_schemas: bool
    ) -> dict[str, dict[str, list[CommitFacts]]]:
        """Return the runs with a commit in a schema of the target, or all, each with the commits of all its tables."""
        found = _by_run(tables)
        if all_schemas:
            return found
        nodes = self.get_macro_resolver().nodes.values()
        own = {str(each.schema).lower() for each in nodes} | {str(self.config.credentials.schema).lower()}
        return {
            run: written for run, written in found.items() if not own.isdisjoint(map(_schema_of, written))
        }

    def undo_plan(
        self, run: str | None, nodes: frozenset[str] | None, *, all_schemas: bool = False
    ) -> UndoPlan:
        """Return what taking a run back would do; nothing is written.

        Args:
            run: The beginning of its invocation id; None for the one that ends last, or whose undo was cut off.
            nodes: Unique ids of the only nodes whose tables go back; None for all.
            all_schemas: Whether the run may be one that wrote no table in a schema of the target.

        Raises:
            DbtRuntimeError: There is no such run, it has written no table of the nodes, or the undo of another one was cut off.
        """
        tables, unreadable = self.past_tables()
        found, unfinished = self._runs_of(tables, all_schemas=all_schemas), self._unfinished()
        cut_off = None if unfinished is None else str(unfinished["run"])
        if cut_off is not None and run is not None and not cut_off.startswith(run):
            raise DbtRuntimeError(
                f"the undo of run {cut_off} was cut off and is not finished; finish it first: dbt-hudi undo --run {cut_off}"
            )
        if cut_off is not None and nodes is not None:
            raise DbtRuntimeError(
                f"the undo of run {cut_off} was cut off, and is finished for the tables that it began with: leave out --select and "
                f"--exclude. {self._way_out()}"
            )
        if cut_off is None and not found:
            raise DbtRuntimeError(f"{_no_run(all_schemas)} on its active timeline; there is nothing to undo")
        name = cut_off or (next(iter(found)) if run is None else _run_named(found, run))
        own = [each for each in (Undoing.of(table, name) for table in tables) if each is not None]
        if unfinished is not None:
            begun, seen = unfinished["tables"], unfinished["newest"]
            own = [_since(each, seen.get(each.table.label)) for each in own if each.table.label in begun]
            known = {each.table.label for each in own}
            half = [
                each
                for each in tables
                if each.restoring and begun.get(each.label) and each.label not in known
            ]
            own += [Undoing(each, (), begun[each.label]) for each in half]
            unreadable = {label: why for label, why in unreadable.items() if label in begun}
        elif nodes is not None:
            own = [each for each in own if not nodes.isdisjoint(one.extra.get(NODE, "") for one in each.own)]
            if not own:
                raise DbtRuntimeError(
                    f"run {name} has written no table of the nodes that are selected ({len(nodes)}); nothing was changed. "
                    f"dbt-hudi runs --run {name[:8]} lists its tables"
                )
            labels = self._labels_of(nodes)
            unreadable = {label: why for label, why in unreadable.items() if label in labels}
        own.sort(key=lambda each: (each.own and each.own[0].committed_at) or datetime.min, reverse=True)
        way_out = "" if unfinished is None else self._way_out()
        going = {
            each.table.label: (each.table.state, {one.instant for one in (*each.own, *each.others)})
            for each in own
        }
        others = [each for each in tables if each.label not in going]
        gap = gap_left(going, [(each.name, each.state) for each in others])
        readers = {each.name.label for each in others if _has_read(each, going)}
        return UndoPlan(name, tuple(own), way_out, gap, (*unreadable.values(),), tuple(sorted(readers)))

    def _labels_of(self, nodes: Collection[str]) -> set[str]:
        """Return schema and name of the tables of nodes, in lower case."""
        known = self.get_macro_resolver().nodes
        return {f"{known[each].schema}.{known[each].alias}".lower() for each in nodes if each in known}

    def _way_out(self) -> str:
        """Return how an undo that was cut off is given up."""
        return (
            f"To give it up, delete {self.connections.warehouse.places.location_root}/{UNFINISHED}: tables that it has not reached "
            "keep their commits of the run; undo later runs first then, and this one after them"
        )

    def undo(self, plan: UndoPlan, *, force: bool = False) -> Answer:
        """Take a run back: each table goes to the instant before it, and those that it made are dropped.

        The tables are written down before the first one goes, so that after a crash or an error a second call finishes it.

        Raises:
            DbtRuntimeError: Something stands against it (nothing was changed), or a table has failed.
        """
        plan.check(force=force)
        storage = open_storage(self.connections.warehouse.places.location_root)
        if (self._unfinished() is None) == bool(plan.way_out):
            raise DbtRuntimeError("another undo has begun or ended meanwhile; look at what would go again")
        if not plan.way_out:
            tables = {each.table.label: each.target for each in plan.tables}
            newest = {each.table.label: each.table.commits[0].instant for each in plan.tables}
            body = {"run": plan.run, "tables": tables, "newest": newest}
            storage.replace(UNFINISHED, json.dumps(body, indent=2).encode())
        done: list[Undoing] = []
        for each in plan.tables:
            try:
                self._check_unchanged(each)
                self._undo_table(each)
            except (HudiError, DbtRuntimeError, OSError) as error:
                raise DbtRuntimeError(
                    f"{each.table.name.label} could not be {each.does}: {error}\nThe undo of run {plan.run} is not finished: "
                    f"{len(done)} of {len(plan.tables)} tables are as they were before it. Finish it with dbt-hudi undo --run "
                    f"{plan.run}"
                ) from error
            done.append(each)
        storage.delete(UNFINISHED)
        rows = [{"table": each.table.name.label, "is": each.does} for each in done]
        return Answer(rows, notes=[f"run {plan.run} is undone: {counted(len(done), 'table')}"])

    def _unfinished(self) -> dict[str, Any] | None:
        """Return the undo that was cut off, None without one."""
        try:
            body = open_storage(self.connections.warehouse.places.location_root).read(UNFINISHED)
            found = json.loads(body)
        except FileNotFoundError:
            return None
        except ValueError as error:
            where = f"{self.connections.warehouse.places.location_root}/{UNFINISHED}"
            raise DbtRuntimeError(
                f"{where} cannot be read: {error}; look at the runs of the tables with dbt-hudi runs, and delete the file"
            ) from error
        return {"run": str(found["run"]), "tables": dict(found["tables"]), "newest": dict(found["newest"])}

    def _check_unchanged(self, undoing: Undoing) -> None:
        """Refuse a table that another writer has committed to since the list was made."""
        known = {each.instant for each in undoing.table.commits}
        state = TableState.load(open_storage(undoing.table.base))
        if known.issuperset(each.requested_time for each in state.timeline.completed_writes):
            return
        now = PastTable.load(undoing.table.name, undoing.table.base)
        new = [each for each in now.commits if each.instant not in known and not each.is_service]
        if new:
            raise DbtRuntimeError(f"{_who(new[0])} was committed meanwhile")

    def _undo_table(self, undoing: Undoing) -> None:
        table = undoing.table
        if undoing.target is not None:
            self._restore(table, undoing.target)
            return
        with self.connections.work(f"drop {table.name.label}") as session:
            self.connections.warehouse.drop(session, table.name.database, table.name.name)

    def _restore(self, table: PastTable, target: str) -> None:
        """Take a table back to an instant; without Spark where the folders know its name."""
        warehouse, name = self.connections.warehouse, table.name
        if warehouse.directory is not None:
            services = TableServices(
                open_storage(table.base), resolve_options(warehouse.options_of(name.database, name.name))
            )
            services.restore(target)
            return
        with self._changed(self._relation(name.database, name.name, True), "undo a run of") as changed:
            changed.services().restore(target)


def _has_read(table: PastTable, going: Mapping[str, tuple[TableState, Collection[str]]]) -> bool:
    """Return whether a commit of a table notes an input as it was with instants that go."""
    for each in table.commits:
        with suppress(ValueError, AttributeError):  # a note that cannot be read
            inputs = json.loads(each.extra.get(INPUTS, "{}")).items()
            if any(instant in going[label][1] for label, instant in inputs if label in going):
                return True
    return False


def _schema_of(label: str) -> str:
    return label.partition(".")[0]


def _no_run(all_schemas: bool) -> str:
    where = "no table" if all_schemas else "no table in the schemas of the target (--all-schemas: in any)"
    return f"{where} has a commit of a dbt run"


def _by_run(tables: Iterable[PastTable]) -> dict[str, dict[str, list[CommitFacts]]]:
    """Return the commits of each run by table, the run with the newest commit first."""
    found: dict[str, dict[str, list[CommitFacts]]] = {}
    for table in tables:
        for run, commits in table.runs().items():
            found.setdefault(run, {})[table.label] = commits
    return dict(sorted(found.items(), key=lambda each: _ended(each[1]), reverse=True))


def _ended(written: Mapping[str, Sequence[CommitFacts]]) -> str:
    moments = [each.committed_at for commits in written.values() for each in commits if each.committed_at]
    return max(moments).isoformat() if moments else ""


def _times(commits: Sequence[CommitFacts]) -> dict[str, Any]:
    """Return when the first of some commits was, and the seconds that they took altogether."""
    moments = [each.committed_at for each in commits if each.committed_at]
    seconds = [each.seconds for each in commits if each.seconds is not None]
    return {"first_commit": min(moments) if moments else None, "seconds": sum(seconds) if seconds else None}


def _run_named(runs: Collection[str], given: str) -> str:
    """Return the run whose invocation id begins with a text."""
    found = [each for each in runs if each.startswith(given)]
    if len(found) != 1:
        listed = ", ".join(list(runs)[:5]) or "none"
        raise DbtRuntimeError(
            f"{len(found)} runs begin with {given!r}; the newest runs are: {listed}. `dbt-hudi runs` lists all"
        )
    return found[0]


def _since(undoing: Undoing, seen: str | None) -> Undoing:
    """Return what becomes of a table, with the later commits of others that are newer than an instant."""
    if undoing.table.restoring:
        return undoing  # a write after it would have finished the restore
    places = [each.instant for each in undoing.table.commits]
    newer = set(places[: places.index(seen)] if seen in places else places)
    return replace(undoing, since=tuple(each for each in undoing.others if each.instant in newer))

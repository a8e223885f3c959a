"""Changes, earlier states and checkpoints as methods of the adapter, for the macros ``hudi_changes`` and so on."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.errors import CorruptTableError, HistoryGapError, TimelineError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage import open_storage
from hudi_engine.format.timeline.moments import digits_of
from hudi_engine.spark.catalog.new_files import METADATA
from hudi_engine.spark.sql.earlier_states import rows_as_of
from hudi_engine.table.changes.checkpoint import format_checkpoint, read_checkpoint
from hudi_engine.table.changes.gaps import check_known
from hudi_engine.table.changes.new_files import shown_note
from hudi_engine.table.changes.window import ALL
from hudi_engine.table.inspect.as_of import LATEST_STATE, instant_as_of
from hudi_engine.table.operations import Answer
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.consumers import list_consumers, register_consumer
from hudi_engine.table.write.metadata_only import note_checkpoint
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.hudi.changes.consume import consumed_columns, untimed_deletes
from dbt.adapters.hudi.changes.full_compare import full_compare
from dbt.adapters.hudi.changes.window import (
    FAIL,
    SNAPSHOT,
    ChangesArgs,
    check_begin,
    check_relation,
    gap_hint,
    next_input_window,
    takes_nothing,
    window_after_gap,
    window_rows,
    with_later_changes,
)
from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.model.known_configs import with_meta
from dbt.adapters.hudi.model.selected import check_takes_changes, tables_named
from dbt.adapters.hudi.parts import Relation, TableAccess
from dbt.adapters.hudi.preview import PREVIEW
from dbt.adapters.hudi.relation import named
from dbt.adapters.hudi.run import OF_A_SAMPLE, RUNS, Feed, InputWindow, ModelRun


@dataclass(frozen=True)
class CheckpointArgs:
    """The arguments of ``hudi_checkpoint``; no source means all inputs, no instant sets nothing."""

    table: str
    source: str | None
    instant: str | None
    reset: bool

    def __post_init__(self) -> None:
        """Refuse what does not go together, before a table is looked at."""
        if self.instant is not None and self.reset:
            raise DbtRuntimeError(
                f"hudi_checkpoint of {self.table}: set is {self.instant!r} and reset is true; give one of them"
            )
        if self.instant is not None and self.source is None:
            raise DbtRuntimeError(
                f"hudi_checkpoint of {self.table}: set is {self.instant!r}, but for which input? Add it, such as "
                f"{{table: {self.table}, input: schema.orders, set: '{self.instant}'}}"
            )

    def applied(self, noted: dict[str, str]) -> dict[str, str]:
        """Return the checkpoint after it."""
        if self.instant is not None:
            return {**noted, str(self.source): self.instant}
        if self.source is not None and self.source not in noted:
            known = ", ".join(sorted(noted)) or "none"
            raise DbtRuntimeError(
                f"hudi_checkpoint of {self.table}: it has noted no input {self.source!r}, so its next run takes all rows of it; "
                f"noted are: {known}"
            )
        return {
            key: value for key, value in noted.items() if not self.reset or self.source not in (None, key)
        }

    def lines(self, noted: dict[str, str], now: dict[str, str]) -> list[str]:
        """Return a line for each input that is shown, and for each that was forgotten."""
        lines = []
        for name in sorted({*noted, *now}):
            before = noted.get(name)
            if self.source not in (None, name):
                continue
            shown = None if before is None else shown_note(before)
            if name not in now:
                lines.append(f"{name}  forgotten, was {shown}; the next run takes all rows of it")
            else:
                was = "" if before == now[name] else f"  set, was {shown or 'not noted'}"
                lines.append(f"{name}  {shown_note(now[name])}{was}")
        return lines


def keep_changes(
    state: TableState, reader: str, taken: InputWindow, noted: str | None, hours: float | None
) -> None:
    """Let clean and archive of a table spare what a model has not taken yet; None of hours keeps nothing."""
    before = taken.since or (None if noted == OF_A_SAMPLE else noted) or taken.end
    # without any the table has no commit
    if hours is not None and before is not None and not PREVIEW.is_on:
        register_consumer(state.storage, reader, digits_of(before, state.config), hours)


def as_it_is(_adapter: Any, relation: BaseRelation, *_: Any, **__: Any) -> BaseRelation:
    """Return what a relation is while dbt parses."""
    return relation


def _lost_state(place: str, error: Exception) -> TimelineError:
    return TimelineError(
        f"the table at {place!r} was restored, replaced, or compacted and cleaned during the run, so the state 'latest' that this "
        f"run began with cannot be read any more, and its other nodes have read that one. Start the run again. ({error})"
    )


class ChangeFeeds(TableAccess):
    """What changed in a table since a model's last run, and the table as it was."""

    @available.parse(as_it_is)
    def hudi_changes(
        self,
        relation: BaseRelation,
        target: BaseRelation,
        fresh: bool,
        given: dict[str, Any],
        model: dict[str, Any],
    ) -> BaseRelation:
        """Return a temporary view of the rows that changed; the window is noted for the commit of the model."""
        args = ChangesArgs.of(given)
        check_relation("hudi_changes", relation)
        name = named(relation)
        source = name.label.lower()
        PREVIEW.check_unchanged(name.database, name.name, "it takes the changes of")
        only_compiles = self.connections.only_compiles
        with self.connections.work(f"changes of {source}") as session:
            table = self.connections.warehouse.require_table(session, name.database, name.name)
            state = TableState.load(table.storage)
            feed = self._feed(session, target, model)
            window = feed.window_of(source, args.window)
            before = feed.noted_for(source)
            backfilled = None if fresh or args.begin is None else before
            try:
                if before == OF_A_SAMPLE and not fresh:
                    lost = f"{target.render()} was built with --sample, so what it lacks of {source} is not known"
                    raise HistoryGapError(lost, before)
                window = window or next_input_window(state, feed, source, fresh, args)
                if backfilled is not None:
                    check_begin(state, source, backfilled, window.since, compiles=only_compiles)
                frame = window_rows(session, state, window, args)
                if backfilled is not None:
                    frame = with_later_changes(session, state, frame, window, backfilled, args)
            except HistoryGapError as gap:
                if args.on_gap == FAIL and not only_compiles:
                    hint = gap_hint(target, model)
                    raise DbtRuntimeError(f"{gap.lost}.{hint}" if hint else str(gap)) from gap
                window, backfilled, before = window_after_gap(state, feed, source, window, args), None, None
                frame = self._after_gap(session, state, window, args, target, gap)
            feed.add(source, window, every_commit=args.mode == ALL)
            if relation.limit is not None:
                feed.is_limited, frame = True, frame.limit(relation.limit)
            elif not only_compiles:
                keep_changes(state, named(target).label.lower(), window, before, args.keep_hours)
            return self._shown(frame, relation, target, ("changes", source, sorted(given.items())))

    def _after_gap(
        self,
        session: SparkSession,
        state: TableState,
        window: InputWindow,
        args: ChangesArgs,
        target: BaseRelation,
        gap: HistoryGapError,
    ) -> DataFrame:
        """All rows, where the model's ``on_gap`` allows them, or the model is only compiled."""
        if args.on_gap == FAIL:
            # an error would end the command for every other node too
            logger.warning("{}. A run of {} will fail", str(gap), target.render())
            return window_rows(session, state, window, args)
        if takes_nothing(window, args):
            # a comparison with no rows would delete all
            logger.warning(
                "{}. Nothing of {} can be taken yet, so the model stays as it is", gap.lost, state.config.name
            )
            return window_rows(session, state, window, args)
        logger.warning("{}. All rows of {} are taken (on_gap)", gap.lost, state.config.name)
        if args.on_gap == SNAPSHOT:
            return window_rows(session, state, window, args)
        name = named(target)
        table = self.connections.warehouse.require_table(session, name.database, name.name)
        frame = full_compare(session, state, TableState.load(table.storage), window.end)
        # a row of the input that has moved to another partition is older than the window's end, and wins over its delete
        return untimed_deletes(frame, "") if args.mode == ALL else frame

    @available.parse_none
    def hudi_check_takes_changes(self, model: dict[str, Any], macro: str = "hudi_changes") -> None:
        """Refuse an incremental model whose strategy could not note what it has taken."""
        name = str(model.get("name"))
        strategy = with_meta(model.get("config") or {}, name).get("incremental_strategy")
        check_takes_changes(name, str(strategy or "default"), self._own_strategies(), macro)

    @available
    def hudi_consumed_columns(self, run: ModelRun, columns: list[Any]) -> list[str]:
        """Return which columns of a model's query are consumed, so that a contract need not list them."""
        is_incremental = run.node["config"].get("materialized") == "incremental"
        names = [column.name for column in columns]
        of_files = [name for name in names if name == METADATA and run.feed.files]
        return of_files + consumed_columns(run.plan, names, takes_changes=is_incremental)

    @available.parse(as_it_is)
    def hudi_as_of(self, relation: BaseRelation, target: BaseRelation, when: Any) -> BaseRelation:
        """Return a temporary view of a table as it was.

        Args:
            when: An instant, a moment, the comment of a savepoint, or ``latest``.
        """
        check_relation("hudi_as_of", relation)
        with self.connections.work(f"{relation.render()} as of {when}") as session:
            name = named(relation)
            table = self.connections.warehouse.require_table(session, name.database, name.name)
            state = TableState.load(table.storage)
            if when == LATEST_STATE:
                # every node of the run goes by the timeline that the first one saw: also of a table without commits, and by an
                # instant alone a write that was under way before it would be there later
                state = self.connections.warehouse.pinned.setdefault(table.path, state)
            instant = instant_as_of(state, when if hasattr(when, "year") else str(when))
            try:
                frame = rows_as_of(session, state, instant)
            except (CorruptTableError, TimelineError) as error:
                if when != LATEST_STATE:
                    raise
                raise _lost_state(table.path, error) from error
            shown = self._shown(frame, relation, target, ("as of", str(when)))
            # of a batch, a sample and a run without rows dbt reads a part of what is referred to
            return replace(shown, limit=relation.limit, event_time_filter=relation.event_time_filter)

    def hudi_checkpoint(
        self, relation: Relation, input: str | None = None, set: str | None = None, reset: bool = False
    ) -> Answer:
        """Show, set or reset how far a model has consumed its inputs."""
        warehouse, name = self.connections.warehouse, self._names(relation)
        source = None if input is None else self._names(input)
        args = CheckpointArgs(name.label, None if source is None else source.label.lower(), set, reset)
        with self._table(relation, "checkpoint of") as (session, table):
            if source is not None and set is not None:
                given = warehouse.require_table(session, source.database, source.name)
                check_known(TableState.load(given.storage), set)
            noted = read_checkpoint(TableState.load(table.storage))
            changed = args.applied(noted)
            if changed != noted:
                with warehouse.one_writer(session, table.path):
                    note_checkpoint(
                        table.storage,
                        lambda state: format_checkpoint(args.applied(read_checkpoint(state))),
                        resolve_options(warehouse.options_at(table.path)),
                    )
                    warehouse.show(session, name.database, name.name, table)
            readers = list_consumers(table.storage)
        lines = args.lines(noted, changed) or [
            "none; a model with hudi_changes takes all rows in its next run"
        ]
        if readers:
            lines.append("consumers (reader, last instant consumed), whose changes clean and archive spare:")
        for each in readers:
            until = datetime.fromtimestamp(each.until_ms / 1000, timezone.utc)
            lines.append(f"{each.name}  {each.instant}  until {until:%Y-%m-%d %H:%M} UTC")
        return Answer(notes=lines)

    def _feed(self, session: SparkSession, target: BaseRelation, model: dict[str, Any]) -> Feed:
        """Return the feed of a model, begun by its first input."""
        run = RUNS.of(str(model.get("unique_id") or ""))
        if not run.feed.inputs:
            name = named(target)
            base = self.connections.warehouse.hudi_base(session, name.database, name.name)
            noted = {} if base is None else read_checkpoint(TableState.load(open_storage(base)))
            run.feed = Feed(noted, tables_named(model, self.get_macro_resolver()))
        return run.feed

    def _shown(
        self, frame: DataFrame, relation: BaseRelation, target: BaseRelation, what: tuple[Any, ...]
    ) -> BaseRelation:
        """Give a frame a temporary name of its own."""
        sure = hashlib.sha256(repr((relation.render(), target.render(), what)).encode()).hexdigest()[:16]
        plain = re.sub(r"\W", "_", f"{relation.identifier}_{what[0]}", flags=re.ASCII).lower()
        name = f"dbt_hudi_{plain[:80]}_{sure}"
        frame.createOrReplaceTempView(name)
        self.connections.get_thread_connection().handle.track_view(name)
        shown: BaseRelation = self.Relation.create(identifier=name, type="view")
        return shown.include(database=False, schema=False)

"""Changes, earlier states and checkpoints as methods of the adapter, for the macros ``hudi_changes`` and so on."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.errors import HistoryGapError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage import open_storage
from hudi_engine.spark.catalog import TableName
from hudi_engine.spark.sql.earlier_states import rows_as_of
from hudi_engine.spark.write.metadata_only import note_checkpoint
from hudi_engine.table.changes.checkpoint import read_checkpoint
from hudi_engine.table.changes.columns import ALL
from hudi_engine.table.changes.gaps import check_known
from hudi_engine.table.inspect.as_of import LATEST_STATE, instant_as_of
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.consumers import list_consumers
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.hudi.changes.asked import FAIL, SNAPSHOT, Asked, check_relation
from dbt.adapters.hudi.changes.compared import compared_with
from dbt.adapters.hudi.changes.consume import beside_steps, consumed_columns
from dbt.adapters.hudi.changes.feed import Feed, Taken
from dbt.adapters.hudi.changes.noted import CheckpointWish, consumer_line, keep_changes
from dbt.adapters.hudi.changes.replay import check_begin, with_later_changes
from dbt.adapters.hudi.changes.samples import Samples, check_no_sample
from dbt.adapters.hudi.changes.told import (
    next_taken,
    taken_beyond_gap,
    takes_nothing,
    told_rows,
    way_of_a_model,
)
from dbt.adapters.hudi.connections import HudiConnectionManager
from dbt.adapters.hudi.logs import logger
from dbt.adapters.hudi.model.feeds import check_takes_changes, tables_named
from dbt.adapters.hudi.model.plan import ModelPlan
from dbt.adapters.hudi.relation import named
from dbt.adapters.hudi.spark.earlier import rows_of_the_run


def _as_it_is(_adapter: Any, relation: BaseRelation, *_: Any, **__: Any) -> BaseRelation:
    """Return what a relation is while dbt parses."""
    return relation


class ChangeFeeds(Samples):
    """What changed in a table since a model's last run, and the table as it was."""

    connections: HudiConnectionManager
    Relation: Any

    @available.parse(_as_it_is)
    def hudi_changes(
        self,
        relation: BaseRelation,
        target: BaseRelation,
        fresh: bool,
        asked: dict[str, Any],
        model: dict[str, Any],
    ) -> BaseRelation:
        """Return a temporary view of the rows that changed; the window is noted for the commit of the model.

        Args:
            fresh: The model is built anew, so all rows are taken.
        """
        wish = Asked.of(asked)
        check_relation("hudi_changes", relation)
        name = named(relation)
        source = name.label.lower()
        with self.connections.work(f"changes of {source}") as session:
            table = self.connections.warehouse.require_table(session, name.database, name.name)
            state = TableState.load(table.storage)
            feed = self._feed(session, target, model)
            taken = feed.taken_of(source, wish.window)
            had = feed.noted_for(source)
            noted = None if fresh or wish.begin is None else had
            try:
                check_no_sample(target, source, None if fresh else had)
                taken = taken or next_taken(state, feed, source, fresh, wish)
                if noted is not None:
                    check_begin(state, source, noted, taken.since, compiles=self.connections.only_compiles)
                frame = told_rows(session, state, taken, wish)
                if noted is not None:
                    frame = with_later_changes(session, state, frame, taken, noted, wish)
            except HistoryGapError as gap:
                if wish.on_gap == FAIL and not self.connections.only_compiles:
                    raise DbtRuntimeError(f"{gap}{way_of_a_model(target, model)}") from gap
                taken, noted, had = taken_beyond_gap(state, feed, source, taken, wish), None, None
                frame = self._beyond_gap(session, state, taken, wish, target, gap)
            feed.inputs[source] = taken
            feed.tells_steps |= wish.mode == ALL
            if relation.limit is not None:
                feed.is_limited, frame = True, frame.limit(relation.limit)
            elif not self.connections.only_compiles:
                keep_changes(state, named(target).label.lower(), taken, had, wish.keep_hours)
            shown = self._shown(frame, relation, target, ("changes", source, sorted(asked.items())))
            if wish.mode != ALL or taken.since is None:
                feed.net_views[str(shown.identifier)] = (frame, taken.since or "", noted or "")
            beside_steps(feed)
            return shown

    def _beyond_gap(
        self,
        session: SparkSession,
        state: TableState,
        taken: Taken,
        wish: Asked,
        target: BaseRelation,
        gap: HistoryGapError,
    ) -> DataFrame:
        """All rows, where the model says what to do when the changes cannot be told, or is only compiled."""
        if wish.on_gap == FAIL:
            # an error would end the command for every other node too
            logger.warning("{}. A run of {} will fail", str(gap), target.render())
            return told_rows(session, state, taken, wish)
        if takes_nothing(taken, wish):
            # to be compared with no rows would be to lose all
            logger.warning(
                "{}. Nothing of {} can be taken yet, so the model stays as it is", gap.lost, state.config.name
            )
            return told_rows(session, state, taken, wish)
        logger.warning("{}. All rows of {} are taken, as on_gap says", gap.lost, state.config.name)
        if wish.on_gap == SNAPSHOT:
            return told_rows(session, state, taken, wish)
        name = named(target)
        table = self.connections.warehouse.require_table(session, name.database, name.name)
        return compared_with(session, state, TableState.load(table.storage), taken.end)

    @available.parse_none
    def hudi_check_takes_changes(self, model: dict[str, Any]) -> None:
        """Refuse an incremental model whose strategy could not note what it has taken."""
        strategy = self.hudi_configs(model).get("incremental_strategy")  # type: ignore[attr-defined]
        own = self._own_strategies()  # type: ignore[attr-defined]
        check_takes_changes(str(model.get("name")), str(strategy or "default"), own)

    @available
    def hudi_consumed_columns(self, plan: ModelPlan, columns: list[Any]) -> list[str]:
        """Return which columns of a model's query are consumed, so that a contract need not list them."""
        return consumed_columns(plan, [column.name for column in columns])

    @available.parse(_as_it_is)
    def hudi_as_of(self, relation: BaseRelation, target: BaseRelation, when: Any) -> BaseRelation:
        """Return a temporary view of a table as it was.

        Args:
            target: The relation of the node that asks.
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
            frame = (rows_of_the_run if when == LATEST_STATE else rows_as_of)(session, state, instant)
            shown = self._shown(frame, relation, target, ("as of", str(when)))
            # of a batch, a sample and a run without rows dbt reads a part of what is referred to
            return replace(shown, limit=relation.limit, event_time_filter=relation.event_time_filter)

    @available.parse_list
    def hudi_checkpoint(
        self, table: BaseRelation | str, source: str | None, instant: str | None, reset: bool
    ) -> list[str]:
        """Show, set or reset how far a model has consumed its inputs, one line an input.

        Args:
            source: Input relation, None for all.
            instant: What it has consumed up to; None changes nothing.
            reset: Forget the input, or all: the next run takes all rows.
        """
        name: TableName = self._names(table)  # type: ignore[attr-defined]
        warehouse = self.connections.warehouse
        wish = CheckpointWish(name.label, source, None if instant is None else str(instant), reset)
        with self.connections.work(f"checkpoint of {name.label}") as session:
            found = warehouse.require_table(session, name.database, name.name)
            noted = read_checkpoint(TableState.load(found.storage))
            if source is not None:
                wish = replace(wish, source=self._input(session, source, instant))
            changed = wish.applied(noted)
            if changed != noted:
                with warehouse.one_writer(session, found.path):
                    note_checkpoint(found.storage, wish.text, resolve_options(warehouse.options))
                    warehouse.show(session, name.database, name.name, found)
        return wish.said(noted, changed)

    @available.parse_list
    def hudi_consumers(self, table: BaseRelation | str) -> list[str]:
        """Show who is registered with a table, so that its clean and archive spare what they have not taken, a line each."""
        name: TableName = self._names(table)  # type: ignore[attr-defined]
        with self.connections.work(f"consumers of {name.label}") as session:
            found = self.connections.warehouse.require_table(session, name.database, name.name)
            return [consumer_line(each) for each in list_consumers(found.storage)]

    def _input(self, session: SparkSession, source: str, instant: str | None) -> str:
        """Return the name under which an input is noted; a given instant must be one that the input had."""
        name: TableName = self._names(source)  # type: ignore[attr-defined]
        if instant is not None:
            table = self.connections.warehouse.require_table(session, name.database, name.name)
            check_known(TableState.load(table.storage), str(instant))
        return name.label.lower()

    def feed_of(self, target: BaseRelation | Any) -> Feed:
        """Return what a model takes in this run; an empty feed when it reads no changes."""
        name = named(target) if isinstance(target, BaseRelation) else TableName(target.schema, target.name)
        feeds: dict[tuple[str, str], Feed] = self.connections.get_thread_connection().handle.feeds
        return feeds.get((name.database.lower(), name.name.lower())) or Feed()

    def _feed(self, session: SparkSession, target: BaseRelation, model: dict[str, Any]) -> Feed:
        """Return the feed of a model, begun by its first input."""
        feeds: dict[tuple[str, str], Feed] = self.connections.get_thread_connection().handle.feeds
        name = named(target)
        key = (name.database.lower(), name.name.lower())
        if key not in feeds:
            base = self.connections.warehouse.hudi_base(session, name.database, name.name)
            noted = {} if base is None else read_checkpoint(TableState.load(open_storage(base)))
            feeds[key] = Feed(noted, tables_named(model, self.get_macro_resolver()))  # type: ignore[attr-defined]
        return feeds[key]

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

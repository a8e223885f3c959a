"""A table as an object: what every call on it shares, and looks at it that need no rows of it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_engine.format.config.options import Options, laid_over, resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.timeline.moments import Moment
from hudi_engine.table.changes.checkpoint import NextWindow, WindowLimits, next_window
from hudi_engine.table.changes.gaps import check_since
from hudi_engine.table.changes.window import start_of
from hudi_engine.table.reader import Rows, looked_up
from hudi_engine.table.services.compaction.plan import since_last_compaction
from hudi_engine.table.snapshot.manifest import Published
from hudi_engine.table.state import TableState
from hudi_engine.table.table_services import TableServices
from hudi_engine.table.txn.recovery import under_way

if TYPE_CHECKING:
    from typing_extensions import Self


RawOptions = Mapping[str, object]


class TableHandle:
    """A table at a path.

    Attributes:
        path: Base path as given, without credentials and settings of a URI.
        storage: The table's storage.
        published: What the newest call of this object has published, None when none has.
    """

    _rows_read: TableState | None = None

    def __init__(
        self,
        path: str,
        storage: Storage,
        options: RawOptions | None = None,
        held: TableState | None = None,
    ) -> None:
        self.path = path
        self.storage = storage
        self.published: Published | None = None
        self._options = dict(options or {})
        self._held = held
        self._columns: pa.Schema | None = None
        self._config = None if held is None else held.config

    @property
    def config(self) -> TableConfig:
        """The table's properties, read each time unless the object holds them."""
        return self._config or TableConfig.load(self.storage)

    def writes_under_way(self) -> list[str]:
        """Return the writes of other processes that are under way, each with its instant and its process, oldest first."""
        state = self._held or TableState.load(self.storage)
        return under_way(self.storage, state.timeline, self._resolved(None))

    def delta_commits(self) -> int:
        """Return how many delta commits came after the newest compaction; 0 for a copy-on-write table."""
        return since_last_compaction((self._held or TableState.load(self.storage)).timeline).count

    def __repr__(self) -> str:
        config = self.config
        key = ", ".join(config.record_key_fields) or "generated"
        parts = [f"{self.path!r}", f"name={config.name!r}", config.table_type.value, f"key={key}"]
        if config.is_partitioned:
            parts.append(f"partitioned by {', '.join(field.name for field in config.partition_fields)}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def as_read(self, state: TableState | None) -> Self:
        """Return this table for writes of rows that were made of its own: what others commit after that state is a conflict.

        Conditions and assignments are evaluated on that state. A subquery in them reads what Spark's catalog shows.

        Args:
            state: The table as it was before the rows, or a subquery, were read; None when they come from elsewhere.
        """
        table = copy.copy(self)
        table._rows_read = state
        return table

    def services(self, options: RawOptions | None = None) -> TableServices:
        """Return the table's services, which need no session; of a table with one its executors are their hands.

        Args:
            options: ``hoodie.*`` options of the calls.
        """
        return self._services(self._resolved(options))

    def _services(self, options: Options) -> TableServices:
        # what these do makes another table of the one that is held
        self._held = None
        return TableServices(self.storage, options, config=self._config, on_publish=self._note_published)

    def _note_published(self, published: Published | None) -> None:
        self.published = published

    def _resolved(self, options: RawOptions | None) -> Options:
        if not self._options or not isinstance(options, Mapping):
            return resolve_options(options if options is not None else self._options)
        # A limit of the call is compared with the table's, not with its default.
        given = {key: value for key, value in options.items() if value is not None}
        return resolve_options(laid_over(self._options, given))

    def lookup(
        self,
        keys: Iterable[Any],
        *,
        columns: Sequence[str] | None = None,
        as_of: Moment | None = None,
        options: RawOptions | None = None,
    ) -> Rows:
        """Return the rows of some record keys, without a Spark job; arguments and errors as of `hudi_engine.lookup`."""
        given = options if options is not None else self._options
        return looked_up(TableState.load(self.storage), keys, columns, as_of, given)

    def next_window(
        self,
        since: Moment | None,
        *,
        max_commits: int | None = None,
        max_rows: int | None = None,
        max_bytes: int | None = None,
    ) -> NextWindow:
        """Return the end of what to read next after an instant, for `changes`, and how many commits lie in between.

        Its ``end`` is None where there is nothing to read yet: no commit, or none before the first write that is under way,
        which is its ``hole``. Read nothing then, as `changes` without an end goes up to now.

        Args:
            since: What was read before, None or ``earliest`` for nothing.
            max_commits: Most commits that changed rows.
            max_rows: Most rows that they wrote or deleted; one commit is always taken.
            max_bytes: Most bytes that they wrote; one commit is always taken.

        Raises:
            ConfigError: A limit below 1.
            HistoryGapError: ``since`` is an instant that the table does not have, or that a rollback or a restore took back.
            TimelineError: No valid point in time.
        """
        limits, state = WindowLimits(max_commits, max_rows, max_bytes), TableState.load(self.storage)
        begin = start_of(since)
        if begin is not None:
            check_since(state, begin)
        return next_window(state, begin, limits=limits)

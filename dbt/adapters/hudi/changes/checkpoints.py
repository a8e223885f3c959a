"""Showing, setting and resetting what a model has consumed of its inputs: the operation ``hudi_checkpoint``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.timeline.moments import digits_of
from hudi_engine.table.changes.checkpoint import format_checkpoint, read_checkpoint
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.consumers import Consumer, register_consumer

from dbt.adapters.hudi.run import OF_A_SAMPLE, InputWindow


@dataclass(frozen=True)
class CheckpointArgs:
    """The arguments of ``hudi_checkpoint``.

    Args:
        source: Input as it is noted; None for all.
        instant: What the input counts as consumed up to; None sets nothing.

    Raises:
        DbtRuntimeError: Arguments that do not go together.
    """

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

    def text(self, table: TableState) -> str:
        """Return the checkpoint after it as it is noted, of what a state of the model's table has noted; raises as `applied`."""
        return format_checkpoint(self.applied(read_checkpoint(table)))

    def lines(self, noted: dict[str, str], now: dict[str, str]) -> list[str]:
        """Return a line for each input that is shown, and for each that was forgotten."""
        names = [name for name in sorted({*noted, *now}) if self.source in (None, name)]
        return [_line(name, noted.get(name), now.get(name)) for name in names]


def _line(name: str, before: str | None, now: str | None) -> str:
    if now is None:
        return f"{name}  forgotten, was {before}; the next run takes all rows of it"
    return f"{name}  {now}" + ("" if before == now else f"  set, was {before or 'not noted'}")


def consumer_line(reader: Consumer) -> str:
    """Return the line about a reader that is registered with a table."""
    until = datetime.fromtimestamp(reader.until_ms / 1000, timezone.utc)
    return f"{reader.name}  {reader.instant}  until {until:%Y-%m-%d %H:%M} UTC"


def keep_changes(
    state: TableState, reader: str, taken: InputWindow, noted: str | None, hours: float | None
) -> None:
    """Let clean and archive of a table spare what a model has not taken yet.

    Args:
        noted: What it has taken before; None where nothing goes on from there.
        hours: For how long; None keeps nothing.
    """
    before = taken.since or (None if noted == OF_A_SAMPLE else noted) or taken.end
    # without any the table has no commit
    if hours is not None and before is not None:
        register_consumer(state.storage, reader, digits_of(before, state.config), hours)

"""Payload classes of Hudi that decide by more than one ordering value, or otherwise among log records than against a stored row.

Hudi 0.x asks the class twice: `preCombine` makes one record of those of the logs, by the ordering value of the table, and
`combineAndGetUpdateValue` merges that into the stored row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.enums import MergeMode
from hudi_engine.format.merge.entries import Entries
from hudi_engine.format.merge.modes.rule import MergeRule
from hudi_engine.format.merge.ordering import newer_wins

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]

_BINLOG_PLACE, _LOG_NUMBER = "_event_seq", "_event_lsn"
_NOT_SENT = "__debezium_unavailable_value"


@dataclass(frozen=True)
class FirstOfEqual(MergeRule):
    """As event time, but of two rows with equal ordering values the older one stays (FirstValueAvroPayload)."""

    equal_without_fields: bool = False

    def first(self, old: Entries, new: Entries, ordering_fields: Sequence[str]) -> Mask:
        """As :meth:`MergeRule.first`."""
        wins = super().first(old, new, ordering_fields)
        equal = np.full(len(new), self.equal_without_fields)
        if ordering_fields:
            olds = [old.rows.column(name) for name in ordering_fields]
            equal = newer_wins([new.rows.column(name) for name in ordering_fields], olds) & _valid(olds)
        return wins & ~(equal & ~old.deleted & ~new.deleted)


@dataclass(frozen=True)
class OrderedDeletes(MergeRule):
    """The newer row wins; a delete loses against a row with a greater ordering value (HoodieAvroPayload among log records)."""

    def first(self, old: Entries, new: Entries, ordering_fields: Sequence[str]) -> Mask:
        """As :meth:`MergeRule.first`."""
        return super().first(old, new, ordering_fields) | ~new.deleted


@dataclass(frozen=True)
class ByBinlog(MergeRule):
    """The row that is later in MySQL's log wins (MySqlDebeziumAvroPayload): its `_event_seq` is a file and a place, `12.3456`.

    Of two rows from one place the older one stays.
    """

    def first(self, old: Entries, new: Entries, ordering_fields: Sequence[str]) -> Mask:  # noqa: ARG002 - it has a column of its own
        """As :meth:`MergeRule.first`."""
        wins, pairs, olds, news = _of_source(_BINLOG_PLACE, pa.string(), old, new)
        if len(pairs):
            olds, news = (pc.split_pattern(column, ".") for column in (olds, news))
            files, new_files = _numbers(olds, 0), _numbers(news, 0)
            wins[pairs] = new_files > files
            equal = np.flatnonzero(new_files == files)
            places, new_places = _numbers(olds.take(equal), 1), _numbers(news.take(equal), 1)
            wins[pairs[equal]] = new_places > places
        return wins


@dataclass(frozen=True)
class ByLogNumber(MergeRule):
    """The row that is later in the log of Postgres wins, by `_event_lsn` (PostgresDebeziumAvroPayload).

    Where it has the text for a value that was not sent, the stored value stays.
    """

    def first(self, old: Entries, new: Entries, ordering_fields: Sequence[str]) -> Mask:  # noqa: ARG002 - it has a column of its own
        """As :meth:`MergeRule.first`."""
        wins, pairs, olds, news = _of_source(_LOG_NUMBER, pa.int64(), old, new)
        wins[pairs] = news.to_numpy() >= olds.to_numpy()
        return wins

    def _gaps(self, older: pa.ChunkedArray, newer: pa.ChunkedArray, wins: Mask) -> Mask:
        return super()._gaps(older, newer, wins) & wins


def _of_source(
    name: str, kind: pa.DataType, old: Entries, new: Entries
) -> tuple[Mask, npt.NDArray[np.int64], pa.ChunkedArray, pa.ChunkedArray]:
    """Return which newer rows win, those pairs that their source's column decides, and its older and newer values there.

    A delete wins, and so does what follows one or a row without a value.
    """
    decided = new.deleted | old.deleted
    if decided.all():
        nothing = pa.chunked_array([], kind)
        return decided, np.array([], np.int64), nothing, nothing
    if name not in new.rows.column_names or new.rows.column(name).type != kind:
        raise CorruptTableError(
            f"the table merges rows by the column {name}, which must be there and a {kind}"
        )
    olds, news = old.rows.column(name), new.rows.column(name)
    if (~decided & ~_valid([news])).any():
        raise CorruptTableError(
            f"a row of a log has no {name}, by which the table merges rows; Hudi reads no such rows"
        )
    wins: Mask = decided | ~_valid([olds])
    pairs = np.flatnonzero(~wins)
    return wins, pairs, olds.take(pairs), news.take(pairs)


def _numbers(parts: pa.ChunkedArray, place: int) -> Numbers:
    try:
        numbers: Numbers = pc.list_element(parts, place).cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid as error:
        raise CorruptTableError(
            f"a row has an {_BINLOG_PLACE} that is no file and place, such as 12.3456, by which the table merges rows: {error}"
        ) from error
    return numbers


def _valid(columns: Sequence[pa.ChunkedArray]) -> Mask:
    result: Mask = np.logical_and.reduce([pc.is_valid(column).to_numpy().astype(bool) for column in columns])
    return result


_IN_LOGS = MergeRule(compares=True, revives=True, remembers_deletes=False)

RULES_OF_RELEASE_0: Mapping[MergeMode, MergeRule] = {
    MergeMode.FIRST_VALUE: FirstOfEqual(
        compares=True,
        deletes_obey_order=False,
        logs=FirstOfEqual(compares=True, revives=True, remembers_deletes=False, equal_without_fields=True),
    ),
    MergeMode.AVRO_PAYLOAD: MergeRule(
        compares=False, logs=OrderedDeletes(compares=True, revives=True, remembers_deletes=False)
    ),
    MergeMode.MYSQL_DEBEZIUM: ByBinlog(compares=True, logs=_IN_LOGS),
    MergeMode.POSTGRES_DEBEZIUM: ByLogNumber(
        compares=True, fills=True, keeps_meta=True, gap_text=_NOT_SENT, logs=_IN_LOGS
    ),
}
"""Rules of merge-on-read tables that Hudi 0.x keeps."""
RULES_OF_RELEASE_1: Mapping[MergeMode, MergeRule] = {MergeMode.AVRO_PAYLOAD: MergeRule(compares=False)}
"""Rules of other tables; the other classes are merged otherwise there, or Hudi 1.x does not have them."""

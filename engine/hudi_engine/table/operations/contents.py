"""The rows of a table counted and hashed, and those of two tables compared: by receipts at once, else by key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.format.config.enums import TableType
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.parallel import run_in_threads
from hudi_engine.format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.format.schema.row_hash import MODULUS, ContentChange, row_hashes, same_hash
from hudi_engine.format.timeline.moments import Moment
from hudi_engine.table.inspect.as_of import instant_as_of
from hudi_engine.table.reader import Rows, filtered
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.receipts import Receipt, receipt_of

_HASH, _HERE, _THERE = "__hash", "__here", "__there"


@dataclass(frozen=True)
class Side:
    """A table, or an earlier state of it, that is counted or compared.

    Args:
        when: Instant, moment or savepoint; None for the newest state.
    """

    state: TableState
    options: Mapping[str, object]
    when: Moment | None = None

    @cached_property
    def instant(self) -> str | None:
        """The newest instant that counts."""
        writes = [each.requested_time for each in self.state.timeline.completed_writes]
        as_of = None if self.when is None else instant_as_of(self.state, self.when)
        return max((each for each in writes if as_of is None or each <= as_of), default=None)

    def receipt(self) -> Receipt:
        """Return what its commits note, without reading a row."""
        timeline = self.state.timeline
        if self.when is None or not timeline.completed_writes:
            return receipt_of(timeline)
        # a state before the oldest active commit has no commit that could say anything
        if self.instant is None:
            return Receipt(since=timeline.completed_writes[0].requested_time)
        return receipt_of(timeline, self.instant)

    def rows(self, columns: Iterable[str] | None = None) -> Rows:
        """Return its rows."""
        wanted = None if columns is None else tuple(columns)
        return filtered(self.state, wanted, None, self.when, self.options)

    @cached_property
    def _all(self) -> Rows:
        # the files are listed once
        return self.rows()

    @cached_property
    def has_logs(self) -> bool:
        """Whether rows are in logs that are not compacted, which receipts do not count."""
        is_mor = self.state.config.table_type is TableType.MERGE_ON_READ
        return is_mor and any(each.log_files for each in self._all.slices)

    def counted(self) -> tuple[Receipt, Receipt]:
        """Count and hash all rows, in one pass over the files; return those of the table and those of its base files."""
        rows = self._all
        logged = [each for each in rows.slices if each.log_files]
        whole = [each for each in rows.slices if not each.log_files]
        bases = [each.without_logs for each in logged if each.base_file is not None]
        parts = run_in_threads(lambda each: _content(rows, each), [*logged, *whole, *bases])
        return _total(parts[: len(logged) + len(whole)]), _total(parts[len(logged) :])

    def types(self) -> dict[str, pa.DataType]:
        """Return the type of each column."""
        return {each.name: each.type for each in self.rows().schema}

    @property
    def has_keys(self) -> bool:
        """Whether rows have keys that are the same in another table of the same rows."""
        return self.state.config.populate_meta_fields and bool(self.state.config.record_key_fields)

    def hashes(self, keys: Iterable[str]) -> pa.Table:
        """Return each key with the sum of the hashes of its rows and their number; rows are their own keys where there are none."""
        names = list(keys)
        own = self.rows().schema.names
        rows = self.rows([*names, *own])
        parts = run_in_threads(lambda each: _hashed(rows.of_slice(each), names, own), rows.slices)
        found = pa.concat_tables([_hashed(rows.schema.empty_table(), names, own), *parts])
        by = names or [_HASH]
        sums = found.append_column("__sum", found.column(_HASH)).group_by(by)
        return sums.aggregate([("__sum", "sum"), ([], "count_all")])


@dataclass(frozen=True)
class Verified:
    """What a count found beside what the commits note.

    Args:
        instant: The newest instant that counts, None for a table without commits.
        counted: The rows of the table.
        in_base_files: Those of its base files, which are all of them where no logs wait for a compaction.
        noted: The receipt, which is of the base files.
        has_logs: Whether logs wait for a compaction.
    """

    instant: str | None
    counted: Receipt
    in_base_files: Receipt
    noted: Receipt
    has_logs: bool = False

    @property
    def ok(self) -> bool:
        """Whether the table has the rows that its commits have written, as far as they say it."""
        return self.noted.since is not None or self.noted == self.in_base_files


def verified(side: Side) -> Verified:
    """Count the rows of a table and their hashes, beside the receipt of its commits."""
    return Verified(side.instant, *side.counted(), side.receipt(), side.has_logs)


def _total(parts: Sequence[ContentChange]) -> Receipt:
    return Receipt(sum(each.rows for each in parts), sum(each.hash for each in parts) % MODULUS)


def _content(rows: Rows, file_slice: Any) -> ContentChange:
    found = ContentChange()
    found.add(rows.of_slice(file_slice))
    return found


def _hashed(rows: pa.Table, keys: list[str], own: list[str]) -> pa.Table:
    return rows.select(keys).append_column(_HASH, pa.array(row_hashes(rows.select(own)), pa.uint64()))


@dataclass(frozen=True)
class Difference:
    """How two tables differ, by key.

    Args:
        examples: A row for each key and column that differs.
        by_receipts: The receipts of both are the same, and no row was read.
    """

    here: int
    there: int
    only_here: int
    only_there: int
    changed: int
    examples: tuple[Mapping[str, Any], ...] = ()
    by_receipts: bool = False

    @property
    def is_none(self) -> bool:
        """Whether both have the same rows."""
        return not (self.only_here or self.only_there or self.changed)


def difference(here: Side, there: Side, limit: int) -> Difference:
    """Compare two tables by receipts where both have the same, else by key and row hash, without keys by the hashes of rows.

    Args:
        limit: Keys of each kind that are shown.
    """
    receipt = here.receipt()
    if receipt.since is None and receipt == there.receipt() and not (here.has_logs or there.has_logs):
        return Difference(receipt.rows, receipt.rows, 0, 0, 0, by_receipts=True)
    one_config, two_config = here.state.config, there.state.config
    is_keyed = here.has_keys and there.has_keys and _keys_of(one_config) == _keys_of(two_config)
    keys = [RECORD_KEY] if is_keyed else []
    if is_keyed and one_config.is_partitioned and _paths_of(one_config) == _paths_of(two_config):
        keys = [PARTITION_PATH, RECORD_KEY]
    by = keys or [_HASH]
    one, two = here.hashes(keys), there.hashes(keys)
    both = one.join(two, by, join_type="full outer", left_suffix=_HERE, right_suffix=_THERE)
    is_here, is_there = (pc.is_valid(both.column(f"count_all{each}")) for each in (_HERE, _THERE))
    same = pc.and_(
        pc.equal(both.column(f"__sum_sum{_HERE}"), both.column(f"__sum_sum{_THERE}")),
        pc.equal(both.column(f"count_all{_HERE}"), both.column(f"count_all{_THERE}")),
    )
    kinds = {
        "only here": pc.and_(is_here, pc.invert(is_there)),
        "only there": pc.and_(is_there, pc.invert(is_here)),
        "changed": pc.and_(pc.and_(is_here, is_there), pc.invert(pc.fill_null(same, False))),
    }
    found = {name: both.filter(mask).select(by) for name, mask in kinds.items()}
    examples = _examples(here, there, found, limit) if is_keyed else []
    gone, new, changed = (found[name].num_rows for name in kinds)
    return Difference(_sum(one), _sum(two), gone, new, changed, tuple(examples))


def _keys_of(config: TableConfig) -> object:
    """Return what two tables must share for one record key to be one row in both."""
    return config.record_key_fields, config.key_generator


def _paths_of(config: TableConfig) -> object:
    """Return what two tables must share for one partition path to be one partition in both."""
    return config.partition_fields, config.hive_style, config.url_encode


def _sum(counted: pa.Table) -> int:
    return int(np.asarray(counted.column("count_all")).sum())


def _examples(here: Side, there: Side, found: Mapping[str, pa.Table], limit: int) -> list[dict[str, Any]]:
    """Return keys of each kind in their order, those that changed with each column that differs."""
    shown, sides = [], (here, there)
    types = [{name.lower(): kind for name, kind in side.types().items()} for side in sides]
    other_types = {
        name for name in types[0].keys() & types[1].keys() if not same_hash(types[0][name], types[1][name])
    }
    for kind, keys in found.items():
        some = sorted(keys.column(RECORD_KEY).to_pylist())[:limit]
        if kind != "changed":
            shown += [{"what": kind, "key": key, "column": None, "here": None, "there": None} for key in some]
            continue
        rows = [_by_key(side, some) for side in sides]
        for key in some:
            one, two = (each.get(key, {}) for each in rows)
            for name in dict.fromkeys([*one, *two]):
                cells = {"what": kind, "key": key, "column": name}
                values = [each.get(name) for each in (one, two)]
                if name.lower() in other_types:
                    texts = [
                        f"{value} ({each[name.lower()]})" for value, each in zip(values, types, strict=True)
                    ]
                    shown.append({**cells, "here": texts[0], "there": texts[1]})
                elif values[0] != values[1] and not all(
                    value != value for value in values
                ):  # NaN is NaN here
                    shown.append({**cells, "here": str(values[0]), "there": str(values[1])})
    return shown


def _by_key(side: Side, keys: list[str]) -> dict[str, dict[str, Any]]:
    if not keys:
        return {}
    own = side.rows().schema.names
    wanted = [(RECORD_KEY, "in", keys)]
    rows = filtered(side.state, (RECORD_KEY, *own), wanted, side.when, side.options)
    return {each.pop(RECORD_KEY): each for each in rows.to_arrow().to_pylist()}

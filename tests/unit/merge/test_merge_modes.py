"""Every merge mode against a naive model that works key by key and row by row."""

from __future__ import annotations

import pickle
import sys
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError, UnsupportedTableError
from hudi_engine.format.config import trusted_rules
from hudi_engine.format.config.enums import MergeMode
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.config.trusted_rules import is_trusted, trust_rules
from hudi_engine.format.merge.merge_rows import merge_rows
from hudi_engine.format.merge.modes.registry import RULES, merge_rule, refuse_to_write
from hudi_engine.format.merge.modes.rule import MergeRule
from hudi_engine.format.merge.slice_reader import read_base_file, read_slice, resolve_delta
from hypothesis import given, settings
from hypothesis import strategies as st
from slices import (
    AWS_DMS,
    DATA,
    DEFAULT,
    LATEST,
    NON_DEFAULTS,
    PARTIAL,
    SliceBuilder,
    config,
    data_rows,
    deletes,
    row,
    trusting,
    upserts,
    with_meta,
)

KEYS = st.sampled_from("abc")
TIMES = st.none() | st.integers(0, 4)
ROWS = st.builds(row, KEYS, TIMES, st.none() | st.integers(0, 3), st.none() | st.sampled_from("xy"))
BATCHES = st.lists(ROWS, max_size=3, unique_by=lambda found: found["id"])
PAYLOADS = [LATEST, DEFAULT, PARTIAL, NON_DEFAULTS, AWS_DMS]


@dataclass(frozen=True)
class Record:
    """A record of one key in the naive model."""

    values: dict[str, Any]
    deleted: bool = False
    always: bool = False
    severed: bool = False


def _lower(new: Any, old: Any) -> bool:
    return old is not None and (new is None or new < old)


def _merge(old: Record, new: Record, payload: str) -> Record:
    """The rule, written out for one pair."""
    compares, fills = payload in (DEFAULT, PARTIAL), payload in (PARTIAL, NON_DEFAULTS)
    loses = compares and _lower(new.values["ts"], old.values["ts"]) and not new.always and not old.always
    if payload == PARTIAL and (new.deleted or old.deleted):
        loses = False
    first, second = (old, new) if loses else (new, old)
    severed = old.severed if loses else new.severed or old.deleted or old.severed
    lends = not second.deleted and (loses or not new.severed)
    if not fills or not lends:
        return replace(first, severed=severed)
    values = {name: second.values[name] if value is None else value for name, value in first.values.items()}
    return replace(first, values=values, severed=severed)


def _merge_all(records: list[Record], payload: str) -> Record:
    return reduce(lambda old, new: _merge(old, new, payload), records)


def _naive_slice(
    base: list[dict[str, Any]], commits: list[list[Record]], payload: str
) -> list[dict[str, Any]]:
    log: dict[str, list[Record]] = {}
    for record in (record for commit in commits for record in commit):
        log.setdefault(record.values["id"], []).append(record)
    merged = []
    for stored in base:
        found = log.get(stored["id"], [])
        if payload in (PARTIAL, NON_DEFAULTS):
            merged.append(_merge_all([Record(stored), *found], payload))
        else:
            merged.append(
                _merge_all([Record(stored), *([_merge_all(found, payload)] if found else [])], payload)
            )
    known = {stored["id"] for stored in base}
    merged.extend(_merge_all(found, payload) for key, found in log.items() if key not in known)
    rows = [record.values for record in merged if not record.deleted]
    return sorted(rows, key=lambda found: (found["id"], str(found)))


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[tuple[list[Record], bytes]]]:
    """A base file and commits on it; a commit is upserts, deletes that always win, or deletes with ordering
    values."""
    base = draw(st.lists(ROWS, max_size=4))
    commits = []
    for number in range(2, 2 + draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["upsert", "upsert", "delete", "ordered delete"]))
        if kind == "upsert":
            rows = draw(st.lists(ROWS, min_size=1, max_size=4))
            commits.append(([Record(each) for each in rows], upserts(rows, number)))
            continue
        keys = draw(st.lists(KEYS, min_size=1, max_size=3, unique=True))
        times = [draw(TIMES) if kind == "ordered delete" else None for _ in keys]
        records = [
            Record(row(key, time), deleted=True, always=time is None)
            for key, time in zip(keys, times, strict=True)
        ]
        commits.append((records, deletes(keys, number, pa.array(times, pa.int64()))))
    return base, commits


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda name: name.rsplit(".", 1)[-1])
@pytest.mark.parametrize("memory", [10**9, 1], ids=["memory", "spilled"])
@settings(max_examples=20, deadline=None)
@given(history=histories())
def test_a_slice_reads_as_the_model_says(
    payload: str,
    memory: int,
    history: tuple[list[dict[str, Any]], list[tuple[list[Record], bytes]]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    base, commits = history
    builder = SliceBuilder(tmp_path_factory.mktemp("slice")).add_base(base)
    for _, block in commits:
        builder.add_log(block)
    context = builder.context(config(payload), memory_limit_bytes=memory)

    rows = read_slice(context, builder.build())

    assert data_rows(rows) == _naive_slice(base, [records for records, _ in commits], payload)
    delta = resolve_delta(context, builder.build())
    kept = np.ones(len(base), dtype=bool)
    kept[delta.masked_positions.to_numpy()] = False
    stored = read_base_file(context, builder.build().base_file)
    assert data_rows(pa.concat_tables([stored.filter(pa.array(kept)), delta.live])) == data_rows(rows)


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda name: name.rsplit(".", 1)[-1])
@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(ROWS, ROWS, st.booleans()), min_size=1, max_size=6))
def test_aligned_rows_merge_as_the_model_says(payload: str, pairs: list[tuple[Any, Any, bool]]) -> None:
    stored = [{**old, "id": str(place)} for place, (old, _, _) in enumerate(pairs)]
    incoming = [{**new, "id": str(place)} for place, (_, new, _) in enumerate(pairs)]
    gone = [deleted for _, _, deleted in pairs]

    outcome = merge_rows(with_meta(stored, 1), with_meta(incoming, 2), config(payload), pa.array(gone))

    results = outcome.rows.select(DATA.names).to_pylist()
    for place, (old, new, deleted) in enumerate(zip(stored, incoming, gone, strict=True)):
        expected = _merge(Record(old), Record(new, deleted, deleted and new["ts"] is None), payload)
        assert outcome.deleted[place].as_py() == expected.deleted
        if not expected.deleted:
            got = results[place] if outcome.changed[place].as_py() else old
            assert got == expected.values


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda name: name.rsplit(".", 1)[-1])
@settings(max_examples=20, deadline=None)
@given(base=BATCHES, commits=st.lists(BATCHES, min_size=1, max_size=4))
def test_logs_and_rewritten_base_files_agree(
    payload: str, base: list[Any], commits: list[list[Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    builder = SliceBuilder(tmp_path_factory.mktemp("slice")).add_base(base)
    table = with_meta(base, 1)
    for number, rows in enumerate(commits, 2):
        builder.add_log(upserts(rows, number))
        table = _rewrite(table, with_meta(rows, number), config(payload))

    merged = read_slice(builder.context(config(payload)), builder.build())

    assert data_rows(merged) == data_rows(table)


def _rewrite(stored: pa.Table, incoming: pa.Table, settings_: TableConfig) -> pa.Table:
    """Copy on write: merge what is there, append what is new."""
    old_keys = stored.column("id").to_pylist()
    keys = incoming.column("id").to_pylist()
    both = [key for key in keys if key in old_keys]
    old = stored.take(pa.array([old_keys.index(key) for key in both], pa.int64()))
    outcome = merge_rows(
        old, incoming.take(pa.array([keys.index(key) for key in both], pa.int64())), settings_
    )
    changed = {key: place for place, key in enumerate(both) if outcome.changed[place].as_py()}
    kept = stored.filter(pa.array([key not in changed for key in old_keys], pa.bool_()))
    fresh = incoming.filter(pa.array([key not in old_keys for key in keys], pa.bool_()))
    return pa.concat_tables([kept, outcome.rows.take(pa.array(list(changed.values()), pa.int64())), fresh])


def test_the_row_that_wins_brings_its_meta_columns(builder: SliceBuilder) -> None:
    slice_ = (
        builder.add_base([row("a", 5), row("b", 5)]).add_log(upserts([row("a", 6), row("b", 4)], 2)).build()
    )

    rows = read_slice(builder.context(config()), slice_).select(["id", "_hoodie_commit_time"]).to_pylist()

    assert {found["id"]: found["_hoodie_commit_time"][-1] for found in rows} == {"a": "2", "b": "1"}


def test_a_partial_update_carries_the_commit_of_the_update(builder: SliceBuilder) -> None:
    slice_ = builder.add_base([row("a", 5, 1, "x")]).add_log(upserts([row("a", 4, None, "y")], 2)).build()

    (found,) = read_slice(builder.context(config(PARTIAL)), slice_).to_pylist()

    assert (found["ts"], found["a"], found["b"], found["_hoodie_commit_time"][-1]) == (5, 1, "x", "2")


def test_a_delete_then_an_older_row_shows_the_stored_row_again(builder: SliceBuilder) -> None:
    slice_ = (
        builder.add_base([row("a", 9, 1)])
        .add_log(deletes(["a"], 2))
        .add_log(upserts([row("a", 3, 2)], 3))
        .build()
    )

    assert data_rows(read_slice(builder.context(config()), slice_)) == [row("a", 9, 1)]


def test_each_duplicate_of_a_base_file_is_merged_by_itself(builder: SliceBuilder) -> None:
    slice_ = builder.add_base([row("a", 1, 1), row("a", 9, 9)]).add_log(upserts([row("a", 5, 5)], 2)).build()

    assert data_rows(read_slice(builder.context(config()), slice_)) == [row("a", 5, 5), row("a", 9, 9)]


def test_several_ordering_fields_compare_one_after_the_other(builder: SliceBuilder) -> None:
    settings_ = config(hoodie__table__ordering__fields="ts,a")
    base = [row("a", 1, 5), row("b", 1, 5), row("c", 1, 5)]
    newer = [row("a", 1, 4), row("b", 1, 5, "new"), row("c", 2, 0)]
    slice_ = builder.add_base(base).add_log(upserts(newer, 2)).build()

    assert data_rows(read_slice(builder.context(settings_), slice_)) == [base[0], newer[1], newer[2]]


def test_every_known_mode_has_a_rule() -> None:
    assert set(RULES) == set(MergeMode) - {MergeMode.CUSTOM}


@pytest.mark.parametrize(
    "payload",
    [
        "com.acme.MyPayload",
        "org.apache.hudi.common.model.FirstValueAvroPayload",
        "org.apache.hudi.common.model.HoodieAvroPayload",
        "org.apache.hudi.common.model.debezium.MySqlDebeziumAvroPayload",
        "org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload",
    ],
)
def test_unknown_payloads_are_refused_by_name(payload: str) -> None:
    with pytest.raises(
        UnsupportedTableError, match=f"'{payload}'.*CUSTOM.*EVENT_TIME_ORDERING.*read optimized"
    ):
        merge_rule(config(payload))
    with pytest.raises(UnsupportedTableError, match=f"'{payload}'"):
        refuse_to_write(config(payload))


class _LongestText(MergeRule):
    """Keeps the row with the longer text; a rule as a user would write it."""

    def first(self, old: Any, new: Any, ordering_fields: Any) -> Any:
        lengths = [[len(text or "") for text in side.rows.column("b").to_pylist()] for side in (old, new)]
        return np.array(lengths[1]) >= np.array(lengths[0])


longest_text = _LongestText(compares=True, fills=True)


def test_a_rule_of_the_users_own_is_found_by_its_import_path(
    builder: SliceBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_ = trusting("test_merge_modes:longest_text", monkeypatch)
    builder.add_base([row("a", 1, 1, "long")]).add_log(upserts([row("a", 2, 2, "x"), row("b", 1)], 2))

    rows = read_slice(builder.context(settings_), builder.build())

    assert data_rows(rows) == [row("a", 1, 1, "long"), row("b", 1)]


class _SmallestWins(MergeRule):
    """Keeps the row with the smaller ordering value."""

    def first(self, old: Any, new: Any, ordering_fields: Any) -> Any:
        (name,) = ordering_fields
        values = [side.rows.column(name).to_pylist() for side in (old, new)]
        return np.array(values[1]) <= np.array(values[0])


smallest_wins = _SmallestWins(compares=True)


def test_a_rule_of_the_users_own_decides_among_the_rows_of_the_logs_too(
    builder: SliceBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_ = trusting("test_merge_modes:smallest_wins", monkeypatch)
    builder.add_base([row("a", 2)])
    for version, ordering in enumerate((1, 4), start=1):
        builder.add_log(upserts([row("a", ordering)], version + 1))

    assert data_rows(read_slice(builder.context(settings_), builder.build())) == [row("a", 1)]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("x", "package.module:name"),
        ("no_such:thing", "cannot be imported"),
        ("json:dumps", "MergeRule instance"),
    ],
)
def test_a_rule_that_cannot_be_found_is_refused(path: str, words: str) -> None:
    trust_rules(path)
    with pytest.raises(ConfigError, match=words):
        merge_rule(config("com.acme.MyPayload", **{"hoodie.engine.merge.rule": path}))


def test_a_rule_that_only_the_table_names_is_not_imported() -> None:
    settings_ = config("com.acme.MyPayload", **{"hoodie.engine.merge.rule": "this:s"})
    with pytest.raises(ConfigError, match=r"option hoodie\.engine\.merge\.rule=this:s"):
        merge_rule(settings_)
    assert "this" not in sys.modules


def test_that_a_rule_is_allowed_travels_to_other_processes() -> None:
    settings_ = config("com.acme.MyPayload", **{"hoodie.engine.merge.rule": "json:decoder"})
    pickle.loads(pickle.dumps(settings_))  # noqa: S301
    assert not is_trusted("json:decoder")
    trust_rules("json:decoder")
    shipped = pickle.dumps(settings_)
    trusted_rules._trusted.discard("json:decoder")
    assert pickle.loads(shipped) == settings_  # noqa: S301
    assert is_trusted("json:decoder")


OF_HUDI = {"hoodie.partition.metafile.use.base.format": "false"}
RELEASE_0 = {**OF_HUDI, "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"}


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (DEFAULT, [row("b", 12, 2), row("d", 10, 1, "x")]),
        (LATEST, [row("b", 12, 2), row("d", 3, 4)]),
        (PARTIAL, [row("b", 12, 2, "x"), row("d", 10, 1, "x")]),
        (NON_DEFAULTS, [row("b", 12, 2, "x"), row("d", 3, 4, "x")]),
    ],
)
def test_tables_of_release_0_combine_the_logs_first_and_a_delete_takes_the_stored_row(
    payload: str, expected: list[dict[str, Any]], tmp_path: Path
) -> None:
    builder = SliceBuilder(tmp_path).add_base([row(key, 10, 1, "x") for key in "abd"])
    builder.add_log(deletes("a", 2, pa.array([5], pa.int64())), deletes("d", 2, pa.array([20], pa.int64())))
    builder.add_log(upserts([row("b", 12, 2), row("d", 3, 4)], 3)).add_log(upserts([row("b", 11, 3)], 4))
    settings_of_0 = config(payload, **RELEASE_0)
    ours = config(payload, **{key: value for key, value in RELEASE_0.items() if key not in OF_HUDI})

    rows = data_rows(read_slice(builder.context(settings_of_0), builder.build()))

    assert rows == expected
    assert settings_of_0.merges_as_release_0 and not ours.merges_as_release_0


@pytest.mark.parametrize(
    ("properties", "as_release_0"),
    [
        (OF_HUDI, True),
        ({**OF_HUDI, "hoodie.record.merge.strategy.id": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"}, False),
        ({**OF_HUDI, "hoodie.timeline.path": "timeline"}, False),
        ({**RELEASE_0, "hoodie.record.merge.mode": "EVENT_TIME_ORDERING"}, False),
    ],
)
def test_tables_of_releases_that_named_no_strategy_are_of_release_0_unless_a_key_of_release_1_is_there(
    properties: dict[str, str], as_release_0: bool
) -> None:
    assert config(DEFAULT, **properties).merges_as_release_0 is as_release_0


def test_version_9_fills_gaps_from_the_stored_row_and_a_row_keeps_its_commit_time(tmp_path: Path) -> None:
    partial = {
        "hoodie.table.version": "9",
        "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
        "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS",
    }
    builder = SliceBuilder(tmp_path).add_base([row(key, 10, 1, "x") for key in "abc"])
    builder.add_log(deletes("a", 2) + upserts([row("b", 20, 2)], 2))
    builder.add_log(upserts([row("a", 5, 3), row("b", 15, 3, "y"), row("c", 10, None, "z")], 3))

    found = read_slice(builder.context(config("", **partial)), builder.build())

    assert data_rows(found) == [row("a", 10, 1, "x"), row("b", 20, 2, "y"), row("c", 10, 1, "z")]
    times = dict(zip(found["id"].to_pylist(), found["_hoodie_commit_time"].to_pylist(), strict=True))
    assert {key: int(time[-2:]) for key, time in times.items()} == {"a": 1, "b": 2, "c": 3}


def test_version_9_fills_what_a_source_says_it_did_not_send(tmp_path: Path) -> None:
    unavailable = {
        "hoodie.table.version": "9",
        "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
        "hoodie.table.partial.update.mode": "FILL_UNAVAILABLE",
        "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value": "?",
    }
    builder = SliceBuilder(tmp_path).add_base([row(key, 10, 1, "x") for key in "abc"])
    builder.add_log(upserts([row("a", 20, None, "?"), row("b", 20, 2, None), row("c", 5, 9, "?")], 2))

    rows = data_rows(read_slice(builder.context(config("", **unavailable)), builder.build()))

    assert rows == [row("a", 20, None, "x"), row("b", 20, 2, None), row("c", 10, 1, "x")]


@pytest.mark.parametrize(
    ("payload", "expected"),
    [(PARTIAL, row("a", 10, 1, "x")), (NON_DEFAULTS, row("a", 5, 3, "x")), (DEFAULT, row("a", 10, 1, "x"))],
)
def test_tables_of_release_1_forget_a_delete_that_a_later_record_replaced(
    payload: str, expected: dict[str, Any], tmp_path: Path
) -> None:
    builder = SliceBuilder(tmp_path).add_base([row("a", 10, 1, "x")])
    builder.add_log(deletes("a", 2)).add_log(upserts([row("a", 5, 3)], 3))

    assert data_rows(read_slice(builder.context(config(payload, **OF_HUDI)), builder.build())) == [expected]

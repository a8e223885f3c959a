"""What the changes of a history tell, checked against the rows at the ends of each window."""

from __future__ import annotations

import json

from hudi_engine.errors import HistoryGapError, TimelineError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.table.changes.plan import plan_changes, steps_since
from hudi_engine.table.state import TableState

from tests.helpers.histories import LATER, NAMES, USUAL, rows_as_of, values


def told(changes):
    extra = (LATER, "_hoodie_is_deleted")
    assert [name for name in changes.columns if name not in extra] == [*NAMES, "_change_type", "_commit_time"]
    return told_rows(row.asDict() for row in changes.collect())


def told_rows(rows):
    return [(row["_change_type"], values(row), row["_commit_time"]) for row in rows]


def applied(rows, changes, *, deletes=True, shape=USUAL):
    """The rows with the changes made, in the order of their commits; an update must find the row it tells."""
    rank = {"delete": 0, "update_before": 1, "update_after": 2, "insert": 3}
    found = dict(rows)
    for kind, row, _ in sorted(changes, key=lambda each: (each[2], rank[each[0]])):
        key = shape.key(row)
        if kind == "delete":
            assert found.pop(key) == row
        elif kind == "update_before":
            assert found[key] == row
        elif kind == "insert":
            assert key not in found
            found[key] = row
        else:
            assert not deletes or (key in found and found[key] != row)
            found[key] = row
    return found


def plan(state, start, end, mode):
    read = state.read_context(state.data_schema(end), resolve_options({}))
    steps, cleaned = steps_since(state, start, end, mode=mode)
    return plan_changes(state, read, steps, cleaned, mode)


def told_here(changes):
    return told_rows(changes.to_pylist())


def check_by_spark(table, states, windows, shape=USUAL):
    """Check what Spark tells of some windows, in every mode and by the CDC query."""
    state = TableState.load(table.storage)
    for start, end in windows:
        for mode in ("net", "all"):
            here = told_here(plan(state, start, end, mode).rows())
            assert sorted(told(table.changes(start, end, mode)), key=str) == sorted(here, key=str)
        newest = applied(states[start], told(table.changes(start, end, "latest")), deletes=False, shape=shape)
        assert {key: row for key, row in newest.items() if key in states[end]} == states[end]
        check_change_data(table, states, (start, end), shape)


def check_change_data(table, states, window, shape):
    """Check that the images of the CDC query are the rows before and after each commit."""
    start, end = window
    found = {}
    for row in table.cdc(start, end).collect():
        before, after = (
            None if row[name] is None else values(json.loads(row[name])) for name in ("before", "after")
        )
        assert (row["op"] == "i") == (before is None) and (row["op"] == "d") == (after is None)
        for image, place in ((before, 0), (after, 1)):
            if image is not None:
                pair = found.setdefault((row["ts_ms"], shape.key(image)), [None, None])
                assert pair[place] is None, "one image a key and commit"
                pair[place] = image
    instants = [each for each in states if start <= each <= end]
    for earlier, later in zip(instants, instants[1:]):
        keys = {*states[earlier], *states[later], *(key for at, key in found if at == later)}
        for key in keys:
            was, now = states[earlier].get(key), states[later].get(key)
            assert found.pop((later, key), [was, was] if was == now else None) == [was, now], (later, key)
    assert not found


def check_all_pairs(table, states, shape=USUAL):
    """Check every window of a history, in every mode, against the rows at its ends.

    A window may be refused only where clean or archive has been at it.
    """
    state = TableState.load(table.storage)
    told_windows = 0
    for number, start in enumerate(states):
        for end in list(states)[number:]:
            try:
                net, each_step = (told_here(plan(state, start, end, mode).rows()) for mode in ("net", "all"))
            except HistoryGapError:
                assert not is_whole(state, start), f"from {start} to {end} nothing is lost"
                continue
            told_windows += 1
            assert applied(states[start], net, shape=shape) == states[end]
            keys = [shape.key(row) for _, row, _ in net]
            both = {**states[start], **states[end]}
            differing = [key for key in both if states[start].get(key) != states[end].get(key)]
            assert sorted(keys) == sorted(differing), "net tells each changed key once"
            assert applied(states[start], each_step, shape=shape) == states[end]
        if is_whole(state, start):
            assert rows_as_of(table, start, shape) == states[start]
    assert told_windows


def is_whole(state, instant):
    """Whether all that came after an instant is on the timeline, with the files of then."""
    first = state.timeline.first_write_time
    try:
        state.timeline.check_readable(instant)
    except TimelineError:
        return False
    return first is not None and instant >= first

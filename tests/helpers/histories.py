"""Random histories of a table, and what its changes must make of each state of it."""

from __future__ import annotations

import random

from hudi_engine import HudiTable
from hudi_engine.changes.plan import plan_changes, steps_since
from hudi_engine.config.options import resolve_options
from hudi_engine.merge.table_reader import read_table
from hudi_engine.storage import open_storage
from hudi_engine.table_state import TableState

COLUMNS = "id int, ts bigint, dt string, name string"
NAMES = ["id", "ts", "dt", "name"]
KEEP = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}


def make(spark, path, table_type="cow", **options):
    return HudiTable.create(
        spark,
        str(path),
        name="t",
        record_key=["id"],
        precombine_field="ts",
        partition_by=["dt"],
        table_type=table_type,
        schema=COLUMNS,
        options={**KEEP, **options},
    )


def frame(spark, *rows):
    return spark.createDataFrame(list(rows), COLUMNS)


def rows_as_of(table, instant):
    rows = read_table(open_storage(table.path), as_of=instant, columns=NAMES).to_pylist()
    return {(row["dt"], row["id"]): tuple(row[name] for name in NAMES) for row in rows}


def told(changes):
    assert changes.columns == [*NAMES, "_change_type", "_commit_time"]
    return [
        (row["_change_type"], tuple(row[name] for name in NAMES), row["_commit_time"])
        for row in changes.collect()
    ]


def applied(rows, changes, *, deletes=True):
    """The rows with the changes made, in the order of their commits; an update must find the row it tells."""
    rank = {"delete": 0, "update_before": 1, "update_after": 2, "insert": 3}
    found = dict(rows)
    for kind, row, _ in sorted(changes, key=lambda each: (each[2], rank[each[0]])):
        key = (row[2], row[0])
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


STEPS = [
    "upsert",
    "upsert",
    "upsert",
    "delete",
    "overwrite",
    "drop",
    "insert",
    "table",
    "compact",
    "rollback",
    "same",
    "restore",
]


def random_history(spark, path, table_type, index, seed, length=10, **options):
    """A table and the instants of its history that nothing has taken back."""
    random_ = random.Random(f"{seed}-{index}-{table_type}")
    table = make(spark, path, table_type, **{"hoodie.index.type": index, **options})
    instants = []
    for clock in range(1, length + 1):
        count = random_.randrange(1, 7)
        keys = {random_.randrange(10): random_.choice(["a", "b"]) for _ in range(count)}
        batch = frame(spark, *((key, clock, part, f"v{clock}") for key, part in keys.items()))
        step = random_.choice(STEPS) if clock > 1 else "upsert"
        if step == "upsert":
            result = table.upsert(
                batch, options={"hoodie.engine.small.batch.rows": random_.choice(["0", "1000"])}
            )
        elif step == "delete":
            result = table.delete(batch)
        elif step == "overwrite":
            result = table.insert_overwrite(batch)
        elif step == "table":
            result = table.insert_overwrite_table(batch)
        elif step == "drop":
            parts = sorted({each.partition for each in table.files()})
            if not parts:
                continue
            result = table.delete_partitions([random_.choice(parts)])
        elif step == "insert":
            new = frame(spark, *((key + 100 * clock, clock, part, "new") for key, part in keys.items()))
            result = table.insert(new)
        elif step == "same":
            result = table.upsert(table.snapshot().select(*NAMES).limit(3))
        elif step == "compact" and table_type == "mor":
            table.compact()
            continue
        elif step == "restore" and len(instants) > 2:
            table.savepoint(instants[-2])
            table.restore(instants[-2])
            table.delete_savepoint(instants[-2])
            instants.pop()
            continue
        else:
            table.rollback(table.upsert(batch).instant)
            continue
        instants.append(result.instant)
    return table, instants


def plan(state, start, end, mode):
    read = state.read_context(state.data_schema(end), resolve_options({}))
    steps, cleaned = steps_since(state, start, end, mode=mode)
    return plan_changes(state, read, steps, cleaned, mode)


def told_here(changes):
    rows = changes.to_pylist()
    return [(row["_change_type"], tuple(row[name] for name in NAMES), row["_commit_time"]) for row in rows]


def check_all_pairs(table, instants):
    """Check every window of a history, in every mode, against the states at its ends."""
    state = TableState.load(table.storage)
    states = {instant: rows_as_of(table, instant) for instant in instants}
    for number, start in enumerate(instants):
        for end in instants[number:]:
            net = told_here(plan(state, start, end, "net").rows())
            assert applied(states[start], net) == states[end]
            keys = [(row[2], row[0]) for _, row, _ in net]
            both = {**states[start], **states[end]}
            differing = [key for key in both if states[start].get(key) != states[end].get(key)]
            assert sorted(keys) == sorted(differing), "net tells each changed key once"
            assert applied(states[start], told_here(plan(state, start, end, "all").rows())) == states[end]
    return states

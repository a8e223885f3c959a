"""Changes between two states of a table, against a dictionary, over histories with every operation and service."""

from __future__ import annotations

import random

import pytest
from hudi_engine import HudiTable

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
    return {
        (row["dt"], row["id"]): tuple(row[name] for name in NAMES) for row in table.as_of(instant).collect()
    }


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
]


def random_history(spark, path, table_type, index, seed):
    """A table and the instants of its history."""
    random_ = random.Random(f"{seed}-{index}-{table_type}")
    table = make(spark, path, table_type, **{"hoodie.index.type": index})
    instants = []
    for clock in range(1, 11):
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
            result = table.delete_partitions([random_.choice(["a", "b"])])
        elif step == "insert":
            new = frame(spark, *((key + 100 * clock, clock, part, "new") for key, part in keys.items()))
            result = table.insert(new)
        elif step == "same":
            result = table.upsert(table.snapshot().select(*NAMES).limit(3))
        elif step == "compact" and table_type == "mor":
            table.compact()
            continue
        else:
            table.rollback(table.upsert(batch).instant)
            continue
        instants.append(result.instant)
    return table, instants


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize(("index", "seed"), [("SIMPLE", 1), ("GLOBAL_SIMPLE", 2), ("SIMPLE", 3)])
def test_changes_between_any_two_instants_make_the_one_state_the_other(
    spark, tmp_path, table_type, index, seed
):
    table, instants = random_history(spark, tmp_path / "t", table_type, index, seed)
    states = {instant: rows_as_of(table, instant) for instant in instants}
    for number, start in enumerate(instants):
        for end in instants[number:]:
            expected = states[end]
            net = told(table.changes(start, end))
            assert applied(states[start], net) == expected
            keys = [(row[2], row[0]) for _, row, _ in net]
            assert len(keys) == len(set(keys)), "net tells a key once"
            assert {key for key in keys} == {
                key for key in {**states[start], **expected} if states[start].get(key) != expected.get(key)
            }
            assert applied(states[start], told(table.changes(start, end, "all"))) == expected
            newest = applied(states[start], told(table.changes(start, end, "latest")), deletes=False)
            assert {key: row for key, row in newest.items() if key in expected} == expected
    first = told(table.changes(None, instants[-1]))
    assert {kind for kind, _, _ in first} <= {"insert"}
    assert applied({}, first) == states[instants[-1]]

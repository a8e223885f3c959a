"""Random sequences of operations against a plain dictionary, read back by our reader and by hudi-rs after every step."""

from __future__ import annotations

import random

import pytest

from tests.helpers.hudi_rs import rows_by_hudi_rs
from tests.helpers.keyed import keyed_table

COLUMNS = "id int, ts bigint, dt string, name string"
NAMES = ["id", "ts", "dt", "name"]
PARTITIONS = ["p=1", "x", "ü", "50%"]


class Model:
    """What the table should hold: key -> row. The key is (id, dt), or id alone with a global index."""

    def __init__(self, is_global: bool) -> None:
        self.is_global = is_global
        self.rows: dict[object, tuple] = {}

    def key(self, row):
        return row[0] if self.is_global else (row[0], row[2])

    def upsert(self, rows):
        for row in rows:
            old = self.rows.get(self.key(row))
            if old is None or row[1] >= old[1]:
                self.rows[self.key(row)] = row

    def delete(self, rows):
        for row in rows:
            self.rows.pop(self.key(row), None)

    def overwrite(self, rows):
        touched = {row[2] for row in rows}
        self.rows = {key: row for key, row in self.rows.items() if row[2] not in touched}
        self.rows.update({self.key(row): row for row in rows})


def distinct(rows, key):
    return list({key(row): row for row in rows}.values())


def batch(random_, clock, key, count):
    rows = [(random_.randrange(12), clock, random_.choice(PARTITIONS), f"v{clock}") for _ in range(count)]
    return distinct(rows, key)


PLACE = ("_hoodie_record_key", "_hoodie_file_name")
SHORT = [("cow", "GLOBAL_SIMPLE", 1), ("mor", "BLOOM", 0)]
LONG = [
    (table_type, index, seed)
    for table_type in ("cow", "mor")
    for index in ("SIMPLE", "GLOBAL_SIMPLE", "BLOOM")
    for seed in range(4)
    if (table_type, index, seed) not in SHORT
]


@pytest.mark.parametrize(
    ("table_type", "index", "seed"),
    [*SHORT, *(pytest.param(*each, marks=pytest.mark.long) for each in LONG)],
)
def test_any_sequence_gives_the_rows_of_the_dictionary(spark, tmp_path, table_type, index, seed):
    random_ = random.Random(f"{seed}-{index}-{table_type}")
    is_global = index.startswith("GLOBAL")
    path = str(tmp_path / "t")
    table = keyed_table(
        spark,
        path,
        table_type,
        schema=spark.createDataFrame([], COLUMNS).schema,
        options={
            "hoodie.index.type": index,
            "hoodie.datasource.write.hive_style_partitioning": str(bool(seed % 2)).lower(),
            "hoodie.datasource.write.partitionpath.urlencode": "true",
            "hoodie.parquet.small.file.limit": random_.choice(["0", "104857600"]),
            "hoodie.clean.automatic": "false",
        },
    )
    model = Model(is_global)
    groups = {}
    for clock in range(1, 9):
        step = random_.choice(["upsert", "upsert", "upsert", "delete", "overwrite", "rollback"])
        rows = batch(random_, clock, model.key, random_.randrange(1, 8))
        frame = spark.createDataFrame(rows, COLUMNS)
        if step == "upsert":
            table.upsert(frame, options={"hoodie.engine.small.batch.rows": random_.choice(["0", "1000"])})
            model.upsert(rows)
        elif step == "delete":
            table.delete(frame)
            model.delete(rows)
        elif step == "overwrite" and not is_global:
            table.insert_overwrite(frame)
            model.overwrite(rows)
        else:
            table.rollback(table.upsert(frame).instant)
        expected = sorted(model.rows.values())
        found = table.snapshot().select(*NAMES, *PLACE).collect()
        ours = sorted(tuple(row)[: len(NAMES)] for row in found)
        assert ours == expected, f"step {clock}: {step}"
        moved = {row[2] for row in rows} if step == "overwrite" and not is_global else set()
        before = groups
        groups = {
            (row["_hoodie_record_key"], row["dt"]): row["_hoodie_file_name"].split("_")[0] for row in found
        }
        stayed = {place for place in before.keys() & groups if place[1] not in moved}
        assert {place: groups[place] for place in stayed} == {place: before[place] for place in stayed}
        assert rows_by_hudi_rs(path, NAMES) == expected, f"step {clock}: {step}, by hudi-rs"

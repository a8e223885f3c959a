"""Large batches into partitions of many files: each row finds the file that holds its key, by hashes, without a join of all keys."""

from __future__ import annotations

import random
import zlib

import pyarrow as pa
import pytest
from hudi_engine import HudiTable, RepeatedKeyError
from hudi_engine.spark.lookup.joins import hashes_of

from tests.helpers.forms import in_turn
from tests.helpers.hudi_rs import rows_by_hudi_rs

pytestmark = pytest.mark.sampled

WIDE = {
    "hoodie.engine.small.batch.rows": "1",
    "hoodie.engine.wide.partition.bytes": "1",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.merge.small.file.group.candidates.limit": "0",
}
COLUMNS = "id int, n int, at int, dt string"


def make(spark, path, kind="cow", files=4, **more):
    """A table of 400 keys in two partitions, each of several files."""
    table = HudiTable.create(
        spark,
        str(path),
        name="t",
        record_key=["id"],
        precombine_field="at",
        partition_by=["dt"],
        table_type=kind,
        options={**WIDE, **more},
    )
    stored = [(key, key, 1, "ab"[key % 2]) for key in range(400)]
    for part in range(files):
        table.upsert(spark.createDataFrame(stored[part::files], COLUMNS))
    return table, {(row[0], row[3]): row[1] for row in stored}


def shown(table):
    return {(row.id, row.dt): row.n for row in table.snapshot().select("id", "dt", "n").collect()}


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.long
def test_random_batches_with_repeated_keys_and_deletes(spark, tmp_path, kind):
    table, model = make(spark, tmp_path / "t", kind)
    chance, times = random.Random(kind), dict.fromkeys(model, 1)
    for _ in range(3):
        comes = [
            (
                chance.randrange(600),
                chance.randrange(10**6),
                chance.randrange(1, 9),
                chance.choice("abc"),
                chance.random() < 0.2,
            )
            for _ in range(500)
        ]
        result = table.upsert(spark.createDataFrame(comes, f"{COLUMNS}, __hudi_is_deleted boolean"))
        assert result.path_taken == "joined"
        batch = {}
        for key, n, at, dt, deletes in comes:
            if (key, dt) not in batch or at >= batch[key, dt][1]:
                batch[key, dt] = (n, at, deletes)
        for place, (n, at, deletes) in batch.items():
            if place in model and at < times[place]:
                continue
            if deletes:
                model.pop(place, None)
            else:
                model[place], times[place] = n, at
        assert shown(table) == model
        by_rs = {(row[0], row[1]): row[2] for row in rows_by_hudi_rs(str(tmp_path / "t"), ["id", "dt", "n"])}
        assert by_rs == model


def test_a_key_that_two_files_hold_is_updated_in_both(spark, tmp_path):
    table, model = make(spark, tmp_path / "t")
    table.insert(spark.createDataFrame([(3, 33, 1, "b")], COLUMNS))
    table.upsert(spark.createDataFrame([(3, 300, 2, "b"), (4, 400, 2, "a"), (900, 9, 2, "a")], COLUMNS))
    rows = sorted((row.id, row.n) for row in table.snapshot().where("id in (3, 4, 900)").collect())
    assert rows == [(3, 300), (3, 300), (4, 400), (900, 9)]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_key_that_is_stored_twice_is_refused_where_one_of_its_rows_would_change(spark, tmp_path, kind):
    table, _ = make(spark, tmp_path / "t", kind, files=1)
    table.insert(spark.createDataFrame([(3, 33, 1, "b"), (3, 34, 1, "b")], COLUMNS))
    before = sorted(tuple(row) for row in table.snapshot().select("id", "n").collect())
    with pytest.raises(RepeatedKeyError, match="3"):
        table.update_where("n = 33 and id < 200", {"n": "n + 1"})
    assert sorted(tuple(row) for row in table.snapshot().select("id", "n").collect()) == before


@pytest.mark.parametrize(
    ("operation", "kind"),
    in_turn(("insert_new", "delete", "skip unchanged", "new rows only"), ("cow", "mor")),
)
def test_every_way_to_write_by_key_finds_its_files(spark, tmp_path, operation, kind):
    table, model = make(spark, tmp_path / "t", kind)
    comes = [(key, -key, 5, "ab"[key % 2]) for key in range(200, 600)]
    batch = spark.createDataFrame(comes, COLUMNS)
    if operation == "insert_new":
        table.insert(batch, options={"hoodie.datasource.write.insert.drop.duplicates": "true"})
        model |= {(row[0], row[3]): row[1] for row in comes if (row[0], row[3]) not in model}
    elif operation == "delete":
        table.delete(batch.select("id", "dt"))
        model = {place: n for place, n in model.items() if place[0] < 200}
    elif operation == "skip unchanged":
        table.upsert(batch)
        result = table.upsert(batch, options={"hoodie.engine.skip.unchanged": "true"})
        assert result.rows_updated == 0
        model |= {(row[0], row[3]): row[1] for row in comes}
    else:
        new = [row for row in comes if row[0] >= 400]
        before = {
            row.file for row in table.snapshot().selectExpr("_hoodie_file_name file").distinct().collect()
        }
        result = table.upsert(spark.createDataFrame(new, COLUMNS))
        after = {
            row.file for row in table.snapshot().selectExpr("_hoodie_file_name file").distinct().collect()
        }
        assert before < after, "a batch of new keys leaves every file as it was"
        model |= {(row[0], row[3]): row[1] for row in new}
    assert shown(table) == model


def words_with_one_hash(count):
    """Pairs of texts of four bytes that, once MurmurHash2 has mixed them, differ in the highest bit alone."""
    multiplier, inverse, highest = 0x5BD1E995, pow(0x5BD1E995, -1, 2**32), 0x80000000
    chance, found = random.Random(1), []
    forms = [(0x20, 0x7E, 4), (0x80, 0x7FF, 2), (0x10000, 0x1FFFF, 1)]
    while len(found) < count:
        first, last, length = chance.choice(forms)
        text = "".join(chr(chance.randint(first, last)) for _ in range(length))
        mixed = int.from_bytes(text.encode(), "little") * multiplier % 2**32
        mixed = (mixed ^ mixed >> 24) * multiplier % 2**32 ^ highest
        other = mixed * inverse % 2**32
        other = (other ^ other >> 24) * inverse % 2**32
        try:
            found.append((text, other.to_bytes(4, "little").decode()))
        except UnicodeDecodeError:
            continue
    return found


def keys_with_one_hash(count):
    """Pairs of texts with the same MurmurHash2 for every seed: the second word takes back what the first one changes."""
    words = words_with_one_hash(2 * count)
    return [
        (first[0] + second[0], first[1] + second[1])
        for first, second in zip(words[:count], words[count:], strict=True)
    ]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_two_keys_with_one_hash_stay_two(spark, tmp_path, kind):
    pairs = keys_with_one_hash(20)
    for pair in pairs:
        first, second = hashes_of(pa.array(pair), pa.array(["", ""])).tolist()
        assert first == second and pair[0] != pair[1], "what this test is about"
    table = HudiTable.create(
        spark, str(tmp_path / "t"), name="t", record_key=["id"], table_type=kind, options=WIDE
    )

    def rows(part, n):
        return spark.createDataFrame([(pair[part], n) for pair in pairs], "id string, n int")

    def stored():
        return {row.id: row.n for row in table.snapshot().select("id", "n").collect()}

    table.insert(spark.createDataFrame([(str(key), 0) for key in range(50)], "id string, n int"))
    table.upsert(rows(0, 1))
    assert table.upsert(rows(1, 2)).rows_inserted == len(pairs)
    assert table.upsert(rows(0, 3).unionByName(rows(1, 4))).rows_updated == 2 * len(pairs)
    model = (
        {str(key): 0 for key in range(50)} | {pair[0]: 3 for pair in pairs} | {pair[1]: 4 for pair in pairs}
    )
    assert stored() == model
    assert table.delete(rows(1, 0).select("id")).rows_deleted == len(pairs)
    assert stored() == {key: n for key, n in model.items() if n != 4}


@pytest.mark.parametrize(("kind", "hive_style"), in_turn(("cow", "mor"), ("false", "true")))
def test_partitions_whose_names_have_one_checksum_keep_their_rows_apart(spark, tmp_path, kind, hive_style):
    here, there = "plumless", "buckeroo"
    for prefix in ("", "dt="):
        assert len({zlib.crc32(f"{prefix}{name}".encode()) for name in (here, there)}) == 1
    table = HudiTable.create(
        spark,
        str(tmp_path / "t"),
        name="t",
        record_key=["id"],
        precombine_field="at",
        partition_by=["dt"],
        table_type=kind,
        options={**WIDE, "hoodie.datasource.write.hive_style_partitioning": hive_style},
    )
    stored = [(key, key, 1, here) for key in range(400)]
    for part in range(4):
        table.upsert(spark.createDataFrame(stored[part::4], COLUMNS))
    model = {(row[0], row[3]): row[1] for row in stored}
    for comes in (
        [(500, 5, 2, here), (3, 33, 2, there)],
        [(7, 70, 3, here), (7, 71, 3, there), (3, 34, 3, there), (501, 51, 3, there)],
        [(9, 90, 4, here), (9, 91, 4, there), (7, 72, 4, here), (600, 60, 4, here), (600, 61, 4, there)],
    ):
        assert table.upsert(spark.createDataFrame(comes, COLUMNS)).path_taken == "joined"
        model |= {(row[0], row[3]): row[1] for row in comes}
        assert shown(table) == model
        assert table.snapshot().where("not endswith(_hoodie_partition_path, dt)").count() == 0
    gone = {(3, there): 0, (9, there): 0}
    table.delete(spark.createDataFrame([*gone, (4, there), (500, here)], "id int, dt string"))
    assert shown(table) == {place: n for place, n in model.items() if place not in {*gone, (500, here)}}

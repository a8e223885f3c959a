"""Receipts: what commits note of the table's rows is what a count of them finds, or they say since when it is not known."""

from __future__ import annotations

import random

import pyarrow.parquet as pq
import pytest
from hudi_engine import HudiTable, rebuild_table
from hudi_engine.format.schema.meta_fields import META_FIELDS
from hudi_engine.table.clone import clone_table
from hudi_engine.table.inspect import file_facts
from hudi_engine.table.operations import OPERATIONS
from hudi_engine.table.state import TableState
from hudi_engine.table.txn.receipts import receipt_of
from hudi_engine.table.txn.transaction import WriteTransaction

from tests.helpers.keyed import keyed_table

COLUMNS = "id int, ts bigint, dt string, name string, tags array<string>"


def make(spark, tmp_path, table_type="cow", **options):
    small = {"hoodie.parquet.small.file.limit": "0", **options}
    return keyed_table(spark, tmp_path / "t", table_type, schema=COLUMNS, options=small)


def rows(spark, ids, ts=1, name="a"):
    made = [(each, ts, "ab"[each % 2], f"{name}{each}", [name] * (each % 3)) for each in ids]
    return spark.createDataFrame(made, COLUMNS)


def verified(table, **given):
    return OPERATIONS["verify"].call(table.services(), given)


def since(table):
    return receipt_of(TableState.load(table.storage).timeline).since


@pytest.mark.parametrize("small", ["0", "1000"])
def test_every_write_that_knows_its_rows_keeps_the_receipt(spark, tmp_path, small):
    table = make(spark, tmp_path, **{"hoodie.engine.small.batch.rows": small})
    seen = []

    def check():
        answer = verified(table)
        assert answer.ok and answer.facts["receipt"] == "matches", answer
        assert answer.facts["rows"] == table.snapshot().count()
        seen.append((answer.facts["instant"], answer.facts["rows"], answer.facts["hash"]))

    table.upsert(rows(spark, range(20)))
    check()
    table.upsert(rows(spark, range(15, 30), 2, "b"))
    check()
    table.upsert(rows(spark, range(5), 3, "c"), update_columns=["name"])
    check()
    table.upsert(rows(spark, range(5), 0, "late"))
    check()
    table.delete(rows(spark, [1, 2, 99], 9))
    check()
    table.insert(rows(spark, [7, 7, 50]))
    check()
    table.replace(rows(spark, [3], 5, "r"), where="id < 10")
    check()
    table.upsert(rows(spark, [3], 6).selectExpr("*", "cast(null as string) as added"))
    check()
    table.insert_overwrite_table(rows(spark, range(8), 7))
    check()
    table.cluster(columns="name")
    table.clean(retain_commits=100)
    check()
    for instant, count, found in seen[2:5]:
        answer = verified(table, as_of=instant)
        assert (answer.facts["rows"], answer.facts["hash"], answer.facts["receipt"]) == (
            count,
            found,
            "matches",
        )
    table.restore(seen[1][0])
    check()
    assert seen[-1] == seen[1]


def grown(table, spark, ids, step):
    table.upsert(rows(spark, ids, step, "g").selectExpr("*", f"'{step}' as more_{step % 3}"))


def retaken(table, chance):
    instants = [each.instant for each in table.commits(4)]
    if instants:
        table.restore(chance.choice(instants))


def copied(table, spark, tmp_path, step):
    copy = str(tmp_path / f"copy{step}")
    clone_table(table.storage, copy)
    assert verified(HudiTable.open(spark, copy)).ok


SEEDS = [pytest.param(each, marks=() if each < 4 else pytest.mark.long) for each in range(200)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_of_random_writes_is_never_wrong(spark, tmp_path, seed):
    """Writes, services, restores, clones and new columns, over both types, three indexes and two versions."""
    chance = random.Random(seed)
    more = {
        "hoodie.index.type": chance.choice(["SIMPLE", "GLOBAL_SIMPLE", "BUCKET"]),
        "hoodie.write.table.version": chance.choice(["6", "9"]),
        "hoodie.compact.inline": chance.choice(["true", "false"]),
        "hoodie.compact.inline.max.delta.commits": "3",
        "hoodie.parquet.small.file.limit": chance.choice(["0", "1000000"]),
    }
    table_type = ("cow", "mor")[seed % 2]
    table, noted, overwritten = make(spark, tmp_path, table_type, **more), 0, 0
    for step in range(1, 14):
        ids = chance.sample(range(40), chance.randint(1, 15))
        match chance.randrange(14 if step > 1 else 1):
            case 0 | 1 | 2:
                table.upsert(rows(spark, ids, step, str(step)))
            case 3:
                table.upsert(rows(spark, ids, step, "some"), update_columns=["name"])
            case 4 | 5:
                table.delete(rows(spark, ids, 99))
            case 6:
                table.insert(rows(spark, [100 + step, 200 + step]))
            case 7:
                overwritten += 1
                table.insert_overwrite(rows(spark, ids, step))
            case 8:
                table.insert_overwrite_table(rows(spark, ids, step))
            case 9 | 10 if table_type == "mor":
                table.compact()
            case 11 if more["hoodie.index.type"] != "BUCKET":
                table.cluster(columns="name")
            case 12:
                grown(table, spark, ids, step)
            case 13 if chance.random() < 0.5:
                retaken(table, chance)
            case _:
                copied(table, spark, tmp_path, step)
        answer = verified(table)
        assert answer.ok, answer
        if since(table) is not None:
            noted += 1
            verified(table, note=True)
            assert since(table) is None
            assert verified(table).facts["receipt"] == "matches"
    assert noted <= 2 * overwritten + 4, "a receipt is kept by all but a few kinds of commits"


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_write_that_others_overtake_is_counted_once(monkeypatch, spark, tmp_path, table_type, version):
    table = make(spark, tmp_path, table_type, **{"hoodie.write.table.version": version})
    table.upsert(rows(spark, range(4)))
    other, whole = HudiTable.open(spark, table.path), WriteTransaction.commit

    def late(*given, **named):
        monkeypatch.setattr(WriteTransaction, "commit", whole)
        for each in (10, 12):
            other.insert(rows(spark, [each]))
            assert verified(other).facts["receipt"] == "matches"
        return whole(*given, **named)

    monkeypatch.setattr(WriteTransaction, "commit", late)
    table.insert(rows(spark, [21, 23]))
    assert (since(table), verified(table).facts["receipt"]) == (None, "matches")
    before, *_, first = [each.instant for each in table.commits()]
    assert verified(table, as_of=first).facts["receipt"] == "matches"
    assert verified(table, as_of=before).ok
    table.insert(rows(spark, [31]))
    assert (since(table), verified(table).facts["receipt"]) == (None, "matches")


@pytest.mark.parametrize("version", ["6", "9"])
def test_logs_count_once_they_are_compacted(spark, tmp_path, version):
    table = make(spark, tmp_path, "mor", **{"hoodie.write.table.version": version})
    table.upsert(rows(spark, range(4)))
    table.upsert(rows(spark, [1, 2], 2, "b"))
    table.delete(rows(spark, [3], 9))
    answer = verified(table)
    assert answer.ok and answer.notes == [
        "the receipt is of the base files; rows in logs count once they are compacted"
    ]
    assert (answer.facts["rows"], answer.facts["base_file_rows"], answer.facts["receipt"]) == (
        3,
        4,
        "matches",
    )
    same = str(tmp_path / "same")
    rebuild_table(spark, same, rows(spark, range(4)), **{**definition(), "table_type": "mor"})
    assert not table.diff(same).is_none, "equal base files are no equal tables while logs wait"
    table.schedule_compaction()
    table.upsert(rows(spark, [0, 20], 3, "c"))
    table.compact()
    answer = verified(table)
    assert (answer.facts["rows"], answer.facts["base_file_rows"], answer.facts["receipt"]) == (
        4,
        4,
        "matches",
    )
    table.compact()
    answer = verified(table)
    assert (answer.facts["rows"], answer.facts["receipt"], answer.notes) == (4, "matches", [])
    rows_now = table.snapshot().drop(*META_FIELDS)
    rebuild_table(spark, same, rows_now, **{**definition(), "table_type": "mor"})
    assert table.diff(same).by_receipts


def test_writes_that_do_not_know_break_the_chain_openly(spark, tmp_path):
    table = make(spark, tmp_path, "mor")
    table.upsert(rows(spark, range(4)))
    assert since(table) is None
    overwritten = table.insert_overwrite(rows(spark, [1], 2)).instant
    answer = verified(table)
    assert since(table) == overwritten and answer.ok and answer.facts["receipt"] == f"none at {overwritten}"
    table.upsert(rows(spark, [20]))
    assert since(table) is not None
    assert verified(table, note=True).notes[0].startswith("receipt noted by commit")
    table.insert(rows(spark, [21]))
    assert since(table) is None and verified(table).ok


def test_the_option_turns_them_off_and_the_next_write_does_not_guess(spark, tmp_path):
    table = make(spark, tmp_path)
    table.upsert(rows(spark, range(4)))
    off = table.upsert(rows(spark, [1], 2), options={"hoodie.engine.receipts": "false"}).instant
    table.upsert(rows(spark, [2], 3))
    assert since(table) is not None and off <= since(table)
    rebuild_table(spark, table.path, rows(spark, range(3)), **definition())
    assert since(table) is None and verified(table).ok


def definition():
    return {
        "name": "t",
        "record_key": ["id"],
        "precombine_field": ["ts"],
        "partition_by": ["dt"],
        "table_type": "cow",
    }


def test_columns_that_go_and_come_back_break_it(spark, tmp_path):
    table = make(spark, tmp_path)
    table.upsert(rows(spark, range(4)))
    without = rows(spark, [1]).drop("name").schema
    table.alter_schema(without)
    assert since(table) is not None
    verified(table, note=True)
    table.upsert(rows(spark, [2], 5))
    assert verified(table).ok and since(table) is not None


@pytest.mark.parametrize("harm", ["a flipped value", "a lost row", "a doubled row"])
def test_a_changed_file_is_noticed(spark, tmp_path, harm):
    table = make(spark, tmp_path)
    table.upsert(rows(spark, range(10)))
    copy = str(tmp_path / "copy")
    clone_table(table.storage, copy)
    clone = HudiTable.open(spark, copy)
    assert verified(clone).facts["receipt"] == "matches"
    file = next(
        f"{copy}/{each.path}" for each in file_facts(TableState.load(clone.storage)) if each.kind == "base"
    )
    read = pq.ParquetFile(file)
    stored, meta = read.read(), read.schema_arrow.metadata
    names = stored.column("name").to_pylist()
    changed = {
        "a flipped value": lambda: stored.set_column(
            stored.column_names.index("name"), "name", [["z", *names[1:]]]
        ),
        "a lost row": lambda: stored.slice(1),
        "a doubled row": lambda: stored.take([0, *range(stored.num_rows)]),
    }[harm]()
    (tmp_path / "new.parquet").unlink(missing_ok=True)
    pq.write_table(changed.replace_schema_metadata(meta), tmp_path / "new.parquet")
    (tmp_path / "new.parquet").replace(file)
    answer = verified(HudiTable.open(spark, copy))
    assert not answer.ok and "other rows" in answer.notes[0]
    found = OPERATIONS["diff"].call(table.services(), {"other": copy})
    assert found.ok  # the receipts are those of the commits
    assert verified(table).ok


def test_two_tables_are_compared_by_receipts_or_by_key(spark, tmp_path):
    table = make(spark, tmp_path)
    table.upsert(rows(spark, range(10)))
    first = table.commits(1)[0].instant
    other = rebuild_table(spark, str(tmp_path / "u"), rows(spark, range(10)).coalesce(1), **definition())
    assert other.instant
    diff = OPERATIONS["diff"]
    same = diff.call(table.services(), {"other": str(tmp_path / "u")})
    assert same.ok and same.notes == ["the same rows, by the receipts of both"] and same.facts["here"] == 10
    table.upsert(rows(spark, [3, 40], 2, "b"))
    table.delete(rows(spark, [5], 9))
    found = diff.call(table.services(), {"other": str(tmp_path / "u")})
    assert not found.ok
    assert found.facts == {"here": 10, "there": 10, "only_here": 1, "only_there": 1, "changed": 1}
    assert [(each["what"], each["key"], each["column"]) for each in found.rows] == [
        ("only here", "40", None),
        ("only there", "5", None),
        ("changed", "3", "ts"),
        ("changed", "3", "name"),
    ]
    assert (found.rows[-1]["here"], found.rows[-1]["there"]) == ("b3", "a3")
    again = table.diff(HudiTable.open(spark, str(tmp_path / "u")))
    assert (again.changed, again.examples) == (1, found.rows) and table.diff().by_receipts
    assert table.verify().ok and table.verify(as_of=first).counted.rows == 10
    assert diff.call(table.services(), {"as_of": first, "other": str(tmp_path / "u")}).ok
    assert diff.call(table.services(), {"other_as_of": first}).facts["changed"] == 1

"""A record index with file groups for each partition of the table, after each step of random histories."""

from __future__ import annotations

import random

import hudi_engine
import pyarrow as pa
import pytest
from hudi_engine import TimelineError
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.storage import open_storage
from hudi_engine.table.metadata import build
from hudi_engine.table.table_services import TableServices

from tests.helpers.metadata_table import differences, open_metadata

BY_PARTITION = {
    "hoodie.metadata.record.level.index.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.write.table.version": "9",
    "hoodie.metadata.compact.max.delta.commits": "5",
}


def rows(ids, ts, dt):
    return pa.table(
        {
            "id": [f"k{each}" for each in ids],
            "ts": pa.array([ts] * len(ids), pa.int64()),
            "dt": [dt(each) for each in ids],
        }
    )


def made(path, kind="cow", options=BY_PARTITION):
    return hudi_engine.create_table(
        str(path),
        name="t",
        record_key=["id"],
        precombine_field="ts",
        partition_by=["dt"],
        table_type=kind,
        options=options,
    )


@pytest.mark.parametrize(
    "seed", [pytest.param(each, marks=() if each < 8 else pytest.mark.long) for each in range(60)]
)
def test_it_has_each_key_in_each_partition(tmp_path, seed):
    chance, done = random.Random(seed), []
    kind = ("cow", "mor")[seed % 2]
    table = made(tmp_path / "t", kind)
    storage = open_storage(str(tmp_path / "t"))

    def restored():
        try:
            table.restore(chance.choice([each.instant for each in table.commits(3)]))
        except TimelineError as error:
            assert "not whole any more" in str(error)

    for step in range(1, 21):
        day = chance.choice(["a", "b/c", "d e", "f"]) if step < 10 else f"day{step}"
        ids = chance.sample(range(30), chance.randint(1, 9))
        batch = rows(ids, step, chance.choice([lambda each: f"p{each % 3}", lambda _: day]))  # noqa: B023
        ways = {
            "upsert": lambda: table.upsert(batch),  # noqa: B023
            "delete": lambda: table.delete(batch.append_column("x", pa.nulls(len(batch))).drop(["x"])),  # noqa: B023
            "overwrite": lambda: table.insert_overwrite(batch),  # noqa: B023
            "delete partition": lambda: table.delete_partitions([day]) if day in table.partitions() else None,  # noqa: B023
            "roll back": lambda: table.rollback(table.upsert(batch).instant),  # noqa: B023
            "restore": restored,
            "clean": lambda: table.clean(retain_commits=2),
            "cluster": table.cluster,
            **({"compact": table.compact} if kind == "mor" else {}),
        }
        weights = [6, 2, 1, 1, 1, 1, 1, 1, *([1] if kind == "mor" else [])]
        way = chance.choices(list(ways), weights)[0] if step > 1 else "upsert"
        done.append(way)
        ways[way]()
        kept = open_metadata(storage)
        assert kept is not None and "record_index" in kept.partitions, done
        assert differences(storage) == [], done


def test_a_key_of_two_partitions_is_looked_up_in_both(tmp_path):
    table = made(tmp_path / "t")
    table.upsert(rows([1, 2], 1, lambda _: "a"))
    table.upsert(rows([1], 2, lambda _: "b"))
    found = table.lookup(["k1"])
    assert sorted(found.to_arrow()["dt"].to_pylist()) == ["a", "b"]
    folder = tmp_path / "t" / ".hoodie" / "metadata" / "record_index"
    ids = {each.name.lstrip(".").split("_")[0] for each in folder.glob("*record-index*")}
    assert ids == {"record-index-a-0000-0", "record-index-b-0000-0"}


def test_it_is_for_tables_of_version_9_with_partitions_and_the_only_one(tmp_path):
    with pytest.raises(
        ConfigError, match="has version 6; such an index is for tables of version 9 with partitions"
    ):
        made(tmp_path / "six", options={**BY_PARTITION, "hoodie.write.table.version": "6"})
    table = made(tmp_path / "two")
    both = {**BY_PARTITION, "hoodie.index.type": "RECORD_INDEX"}
    with pytest.raises(
        ConfigError, match="hoodie.index.type asks for a record index over all partitions; a table has one"
    ):
        table.upsert(rows([1], 1, lambda _: "a"), options=both)
    table.upsert(rows([1], 1, lambda _: "a"))
    with pytest.raises(ConfigError, match="secondary_index_ts needs one over all partitions"):
        TableServices(open_storage(str(tmp_path / "two")), resolve_options({})).create_index(
            "secondary_index_ts", ["ts"]
        )


@pytest.mark.parametrize(
    "index", ["hoodie.metadata.record.level.index.enable", "hoodie.metadata.record.index.enable"]
)
@pytest.mark.parametrize("keys", [1, 7, 1000])
def test_a_build_has_some_keys_in_memory_at_a_time(tmp_path, monkeypatch, index, keys):
    monkeypatch.setattr(build, "_KEYS_AT_A_TIME", keys)
    table = made(tmp_path / "t", "mor", {"hoodie.write.table.version": "9"})
    table.upsert(rows(range(40), 1, lambda each: f"p{each % 3}"))
    table.upsert(rows(range(5, 50), 2, lambda each: f"p{each % 3}"))
    table.upsert(rows([7, 60], 3, lambda each: f"p{each % 3}"), options={index: "true"})
    assert differences(open_storage(str(tmp_path / "t"))) == []


def test_a_build_that_finds_a_key_twice_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "_KEYS_AT_A_TIME", 1)
    table = made(tmp_path / "t", options={"hoodie.write.table.version": "9"})
    table.upsert(rows(range(9), 1, lambda _: "a"))
    table.insert(rows([8], 1, lambda _: "b"), options={"hoodie.metadata.record.index.enable": "true"})
    kept = open_metadata(open_storage(str(tmp_path / "t")))
    assert kept.partitions == ("files",) and not kept.timeline.pending
    assert not (tmp_path / "t" / ".hoodie" / "metadata" / "record_index").exists()

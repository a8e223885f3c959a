"""The metadata table of version 6 after each step of random histories, compared with the table's files and rows."""

from __future__ import annotations

import random

import pytest
from hudi_engine import TimelineError
from hudi_engine.format.storage import open_storage

from tests.helpers.keyed import keyed_table
from tests.helpers.metadata_table import differences, open_metadata
from tests.spark.test_receipts import COLUMNS, rows

METADATA = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "3",
}
PARTITIONS = ["bloom_filters", "column_stats", "files", "record_index"]
SEEDS = [pytest.param(each, marks=() if each < 4 else pytest.mark.long) for each in range(60)]


@pytest.mark.parametrize("seed", SEEDS)
def test_it_has_the_files_and_keys_of_the_table(spark, tmp_path, seed):
    chance, done = random.Random(seed), []
    kind = ("cow", "mor")[seed % 2]
    index = chance.choice(["SIMPLE", "GLOBAL_SIMPLE", "RECORD_INDEX"])
    options = {"hoodie.index.type": index, **METADATA}
    table = keyed_table(spark, tmp_path / "t", kind, schema=COLUMNS, options=options)
    storage = open_storage(table.path)

    def restored():
        try:
            table.restore(chance.choice([each.instant for each in table.commits(3)]))
        except TimelineError as error:
            assert "not whole any more" in str(error)

    for step in range(1, 21):
        ids = chance.sample(range(40), chance.randint(1, 12))
        batch = rows(spark, ids, step, str(step))
        ways = {
            "upsert": lambda batch=batch: table.upsert(batch),
            "delete": lambda batch=batch: table.delete(
                batch.selectExpr("id", "99L as ts", "dt", "name", "tags")
            ),
            "overwrite": lambda batch=batch: table.insert_overwrite(batch),
            "roll back": lambda batch=batch: table.rollback(table.upsert(batch).instant),
            "restore": restored,
            "clean": lambda: table.clean(retain_commits=2),
            "cluster": lambda: table.cluster(columns="name"),
            **({"compact": table.compact} if kind == "mor" else {}),
        }
        weights = [4, 2, 1, 1, 1, 1, 1, *([1] if kind == "mor" else [])]
        way = chance.choices(list(ways), weights)[0] if step > 1 else "upsert"
        done.append(way)
        ways[way]()
        kept = open_metadata(storage)
        assert kept is not None and sorted(kept.partitions) == PARTITIONS, done
        assert differences(storage) == [], done

"""Keys that a process remembers of base files which it wrote are those that the files hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hudi_engine import HudiTable
from hudi_engine.table.lookup import tagging
from hudi_engine.table.lookup.tagging import DRIVER_KEYS, KeyCache
from hudi_engine.table.state import TableState
from hudi_engine.table.write import driver_path

from tests.helpers.keyed import keyed_table

COLUMNS = "id int, ts int, dt string, v string"


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[KeyCache]:
    cache = KeyCache()
    monkeypatch.setattr(driver_path, "DRIVER_KEYS", cache)
    before = dict(DRIVER_KEYS._held)
    yield cache
    assert dict(DRIVER_KEYS._held) == before, "the process's own is not used"


def rows(spark: Any, ids: Any, ts: int) -> Any:
    return spark.createDataFrame([(key, ts, "ab"[key % 2], f"v{key}-{ts}" * 9) for key in ids], COLUMNS)


def stored(table: HudiTable) -> dict[str, list[str]]:
    """Keys of the latest base files in file order, as Spark reads them."""
    slices = TableState.load(table.storage).view(None).latest_slices()
    paths = [table.storage.uri(each.base_file.path) for each in slices if each.base_file]
    columns = ("_hoodie_file_name", "_hoodie_record_key", "_metadata.row_index")
    found: dict[str, list[tuple[int, str]]] = {}
    for name, key, place in table.spark.read.parquet(*paths).select(*columns).collect():
        found.setdefault(name, []).append((place, key))
    return {name: [key for _, key in sorted(keys)] for name, keys in found.items()}


@pytest.mark.parametrize("count", [40, 6000])
def test_keys_follow_files_through_updates_inserts_and_deletes(
    count: int, spark: Any, tmp_path: Path, kept: KeyCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = keyed_table(spark, tmp_path / "t")
    table.upsert(rows(spark, range(count), 1))
    table.upsert(rows(spark, range(0, count, 7), 2))
    read = []
    monkeypatch.setattr(tagging, "read_base_file", lambda *given, **__: read.append(given) or pytest.fail())
    table.upsert(rows(spark, range(0, count, 5), 3))
    table.upsert(rows(spark, range(3, count + 9, 4), 4))
    table.delete(rows(spark, range(0, count, 9), 5))
    table.upsert(rows(spark, range(0, count, 6), 6))

    assert not read, "what a write knows of the files it made need not be read"
    known = {Path(name[1]).name: keys.to_pylist() for name, keys in kept._held.items()}
    files = stored(table)
    assert len(files) == 2 and {name: known[name] for name in files} == files


def test_nothing_is_kept_where_that_is_asked(spark: Any, tmp_path: Path, kept: KeyCache) -> None:
    table, nothing = keyed_table(spark, tmp_path / "t"), {"hoodie.engine.key.cache.bytes": "0"}
    table.upsert(rows(spark, range(40), 1), options=nothing)
    table.upsert(rows(spark, range(30), 2), options=nothing)
    assert not kept._held

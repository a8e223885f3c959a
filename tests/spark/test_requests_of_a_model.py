"""What one small incremental run asks of the storage: each request is a round trip on an object store."""

from __future__ import annotations

import traceback

import pytest
from hudi_engine.format.storage.local import LocalStorage

from dbt.adapters.hudi.credentials import HudiCredentials
from dbt.adapters.hudi.model.plan import resolve_plan
from dbt.adapters.hudi.rows import builds
from dbt.adapters.hudi.spark.warehouse import Warehouse

OWN = ("hudi_engine", "adapters/hudi")
MODULES, FUNCTIONS = 12, 27
CONFIG = {"materialized": "incremental", "unique_key": "id"}


@pytest.fixture
def requests(monkeypatch):
    """Who reads the table's properties, lists its timeline and writes manifests: the calls that lead there."""
    asked: dict[str, list[str]] = {"properties": [], "listings": [], "manifests": []}
    read, listing, create = LocalStorage.read, LocalStorage.list, LocalStorage.create

    def caller():
        frames = [frame.name for frame in traceback.extract_stack()[:-2] if "hudi_engine" in frame.filename]
        return " > ".join(frames[-6:])

    def noting_read(self, path, *more, **options):
        if path == ".hoodie/hoodie.properties":
            asked["properties"].append(caller())
        return read(self, path, *more, **options)

    def noting_list(self, path="", *more, **options):
        if path == ".hoodie":
            asked["listings"].append(caller())
        return listing(self, path, *more, **options)

    def noting_create(self, path, *more, **options):
        if "_spark_metadata" in path:
            asked["manifests"].append(caller())
        return create(self, path, *more, **options)

    monkeypatch.setattr(LocalStorage, "read", noting_read)
    monkeypatch.setattr(LocalStorage, "list", noting_list)
    monkeypatch.setattr(LocalStorage, "create", noting_create)
    return asked


def test_a_small_upsert_reads_the_properties_thrice_and_publishes_once(spark, tmp_path, requests):
    credentials = HudiCredentials.from_dict({"schema": "counted", "location_root": str(tmp_path)})
    warehouse = Warehouse(credentials, str(tmp_path))
    warehouse.create_schema(spark, "counted")
    plan = resolve_plan({"config": CONFIG}, "counted", "orders", warehouse.places)
    first = builds.ModelRows(spark.sql("select 1 as id, 'a' as v"))
    builds.rebuild_model(warehouse, spark, plan, first)
    before = {kind: len(calls) for kind, calls in requests.items()}
    second = builds.ModelRows(spark.sql("select 1 as id, 'b' as v union all select 2, 'c'"))
    response = builds.write_model(warehouse, spark, plan, second)
    seen = {kind: calls[before[kind] :] for kind, calls in requests.items()}
    assert (response.rows_inserted, response.rows_updated) == (1, 1)
    assert sorted(map(tuple, spark.sql("select * from counted.orders").collect())) == [(1, "b"), (2, "c")]
    warehouse.drop_schema(spark, "counted")
    assert len(seen["manifests"]) == 1, seen["manifests"]
    assert len(seen["properties"]) <= 3, "\n".join(seen["properties"])
    assert len(seen["listings"]) <= 6, "\n".join(seen["listings"])


def test_rows_pass_few_modules_on_their_way_from_the_adapter_to_a_file(spark, tmp_path, monkeypatch):
    credentials = HudiCredentials.from_dict({"schema": "levels", "location_root": str(tmp_path)})
    warehouse = Warehouse(credentials, str(tmp_path))
    warehouse.create_schema(spark, "levels")
    plan = resolve_plan({"config": CONFIG}, "levels", "orders", warehouse.places)
    builds.rebuild_model(warehouse, spark, plan, builds.ModelRows(spark.sql("select 1 as id, 'a' as v")))
    ways = []
    opened = LocalStorage.open_output

    def noting(self, path, **options):
        if path.endswith(".parquet"):
            frames = traceback.extract_stack()[:-1]
            ways.append([each.filename for each in frames if any(room in each.filename for room in OWN)])
        return opened(self, path, **options)

    monkeypatch.setattr(LocalStorage, "open_output", noting)
    builds.write_model(warehouse, spark, plan, builds.ModelRows(spark.sql("select 1 as id, 'b' as v")))
    warehouse.drop_schema(spark, "levels")
    (way,) = ways
    # The adapter's method, which a macro calls, is one more.
    assert 1 + len(set(way)) <= MODULES, "\n".join(dict.fromkeys(way))
    assert 1 + len(way) <= FUNCTIONS, way

"""A key that a write stores a second time: the record index, which has one place for each, is dropped and hides no row."""

from __future__ import annotations

import hudi_engine
import pyarrow as pa
import pytest

OPTIONS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
}
WITHOUT = {"hoodie.metadata.enable": "false"}
VERSIONS = ("6", "8", "9")


def made(path, kind, version):
    return hudi_engine.create_table(
        str(path),
        name="t",
        record_key=["id"],
        precombine_field="ts",
        partition_by=["day"],
        table_type=kind,
        options={**OPTIONS, "hoodie.write.table.version": version},
    )


def rows(ts, **days):
    """Rows by key, with their partitions."""
    return pa.table(
        {"id": list(days), "ts": pa.array([ts] * len(days), pa.int64()), "day": list(days.values())}
    )


def found(table, key="k1"):
    """How many rows of a key a look-up, a filter and a full read find."""
    filters = [("id", "=", key)]
    return [
        *(
            hudi_engine.lookup(table.path, [key], options=each).to_arrow().num_rows
            for each in (None, WITHOUT)
        ),
        *(
            hudi_engine.read(table.path, filters=filters, options=each).to_arrow().num_rows
            for each in (None, WITHOUT)
        ),
    ]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("operation", ["upsert", "insert"])
@pytest.mark.parametrize("with_it", ["k9", "x"])
def test_a_write_that_touches_the_first_copy_too(tmp_path, kind, version, operation, with_it):
    table = made(tmp_path / "t", kind, version)
    table.upsert(rows(0, k1="a", x="a"))
    getattr(table, operation)(rows(1, k1="b", **{with_it: "a"}))
    assert found(table) == [2] * 4
    table.delete(rows(5, k1="b"))
    assert found(table) == [1] * 4
    assert table.delete_where([("id", "=", "k1")]).rows_deleted == 1
    assert "k1" not in table.to_arrow().column("id").to_pylist()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_deleted_row_that_comes_back_beside_its_copy(tmp_path, version):
    table = made(tmp_path / "t", "mor", version)
    table.upsert(rows(0, k1="a", x="a", y="b"))
    table.delete(rows(1, k1="a"))
    table.upsert(rows(2, k1="b"))
    table.upsert(rows(3, k1="a", y="b"))
    assert found(table) == [2] * 4


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_key_that_moves_keeps_the_index(tmp_path, kind, version):
    table = made(tmp_path / "t", kind, version)
    table.upsert(rows(0, k1="a", x="a"))
    table.upsert(rows(1, k1="b", k9="a"), options={"hoodie.index.type": "GLOBAL_SIMPLE"})
    assert found(table) == [1] * 4
    assert "record_index" in table.config.metadata_partitions

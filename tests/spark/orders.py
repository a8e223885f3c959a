"""Tables of orders, in the shapes in which every write operation is tried, and how they are read back."""

from __future__ import annotations

import pytest
from hudi_engine import HudiTable

from tests.helpers.hudi_rs import rows_by_hudi_rs

HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
COLUMNS = "id int, ts bigint, dt string, name string"
FIRST = [(1, 10, "a", "one"), (2, 10, "a", "two"), (3, 10, "b", "three")]

# Type, path, partitions and table version. The small-batch path on the driver and the distributed path give the same table.
SHAPES = {
    f"{kind}-{path}-{'partitioned' if parts else 'unpartitioned'}-v{version}": (kind, rows, parts, version)
    for kind, path, rows, parts in (
        ("cow", "driver", None, ["dt"]),
        ("cow", "executors", "0", ["dt"]),
        ("mor", "driver", None, ["dt"]),
        ("mor", "executors", "0", ["dt"]),
        ("cow", "executors", "0", None),
        ("mor", "driver", None, None),
    )
    for version in (6, 8, 9)
}
BOTH = ("cow-driver-partitioned-v6", "mor-executors-partitioned-v9")
OTHERS = ("cow-executors-unpartitioned-v9", "mor-driver-unpartitioned-v6")


def shapes(*in_the_gate):
    """All of them; those that are not named are for the long tier."""
    return [
        pytest.param(shape, id=name, marks=() if name in in_the_gate else pytest.mark.long)
        for name, shape in SHAPES.items()
    ]


# Every pair of type, path and partitions; the other two of those pairs; for what is the same for all of them.
every_pair = pytest.mark.parametrize("table", shapes(*BOTH, *OTHERS), indirect=True)
the_others = pytest.mark.parametrize("table", shapes(*OTHERS), indirect=True)
one_shape = pytest.mark.parametrize("table", shapes(BOTH[1]), indirect=True)


def frame(spark, *rows):
    return spark.createDataFrame([tuple(row) for row in rows], COLUMNS)


def create(spark, tmp_path, **definition):
    """An empty table in folder ``t`` with the key ``id``."""
    return HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"], **definition)


def create_orders(spark, path, kind, small_rows, partition_by, version=6):
    """An empty table of orders in one of the shapes."""
    return HudiTable.create(
        spark,
        str(path),
        name="orders",
        record_key=["id"],
        precombine_field="ts",
        partition_by=partition_by,
        table_type=kind,
        options={
            **HIVE,
            "hoodie.write.table.version": str(version),
            **({} if small_rows is None else {"hoodie.engine.small.batch.rows": small_rows}),
        },
    )


def rows_of(table):
    return sorted(tuple(row) for row in table.snapshot().select("id", "ts", "dt", "name").collect())


def check_readers(table, expected):
    """Our reader and hudi-rs return exactly these rows."""
    assert rows_of(table) == sorted(expected)
    assert rows_by_hudi_rs(table.path, ["id", "ts", "dt", "name"]) == sorted(expected)

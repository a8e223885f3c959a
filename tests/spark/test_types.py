"""Every Spark type a Hudi table can hold comes back as written; what it cannot hold is refused by name."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hudi_engine import DirectoryCatalog, HudiTable, SchemaError

pytestmark = pytest.mark.sampled

UTC = dt.timezone.utc

# Spark type, type as read back, values
TYPES = [
    ("boolean", "boolean", [True, False]),
    ("tinyint", "int", [-128, 127]),
    ("smallint", "int", [-32768, 32767]),
    ("int", "int", [-(2**31), 2**31 - 1]),
    ("bigint", "bigint", [-(2**63), 2**63 - 1]),
    ("float", "float", [-1.5, 3.0e38]),
    ("double", "double", [-0.0, 1.7976931348623157e308]),
    ("decimal(10,2)", "decimal(10,2)", [Decimal("-99999999.99"), Decimal("0.01")]),
    (
        "decimal(38,18)",
        "decimal(38,18)",
        [Decimal("12345678901234567890.123456789012345678"), Decimal("-1E-18")],
    ),
    ("string", "string", ["", "it's \u4e2d\u6587 \U0001f600\n"]),
    ("binary", "binary", [bytearray(b""), bytearray(b"\x00\xff")]),
    ("date", "date", [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    (
        "timestamp",
        "timestamp",
        [dt.datetime(1900, 1, 1, tzinfo=UTC), dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)],
    ),
    ("array<int>", "array<int>", [[], [1, None, 3]]),
    ("array<struct<a:string,b:int>>", "array<struct<a:string,b:int>>", [[("x", 1), ("y", None)], []]),
    ("map<string,double>", "map<string,double>", [{}, {"a": 1.0, "b": None}]),
    (
        "struct<a:string,b:struct<c:date>>",
        "struct<a:string,b:struct<c:date>>",
        [("x", (dt.date(2026, 1, 1),)), (None, None)],
    ),
]
REFUSED = [
    ("timestamp_ntz", "timestamp_ntz'2026-01-01 00:00:00'"),
    ("interval day to second", "interval '1' day"),
    ("interval year to month", "interval '1' year"),
    ("void", "null"),
    ("map<int,string>", "map(1, 'a')"),
]


@pytest.mark.core
@pytest.mark.parametrize(
    ("table_type", "block_format"),
    [
        ("cow", "avro"),
        ("mor", "avro"),
        ("mor", "parquet"),
        pytest.param("cow", "parquet", marks=pytest.mark.long),
    ],
)
def test_every_type_round_trips_through_base_files_and_logs(
    spark, tmp_path, table_type, block_format, capsys
):
    columns = ", ".join(f"c{number} {kind}" for number, (kind, _, _) in enumerate(TYPES))
    rows = [(key, key, *[values[key % 2] for _, _, values in TYPES]) for key in range(2)]
    rows.append((2, 2, *[None] * len(TYPES)))
    frame = spark.createDataFrame(rows, f"id int, ts int, {columns}")
    table = HudiTable.create(
        spark,
        str(tmp_path / "t"),
        name="t",
        record_key=["id"],
        precombine_field="ts",
        table_type=table_type,
        options={"hoodie.logfile.data.block.format": block_format},
    )
    table.upsert(frame)
    table.upsert(frame)
    found = table.snapshot().drop("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key")
    found = found.drop("_hoodie_partition_path", "_hoodie_file_name")
    with capsys.disabled():
        print(f"\n{table_type}, {block_format} blocks: Spark type -> type in the table")  # noqa: T201
        for field, (kind, expected, _) in zip(found.schema.fields[2:], TYPES, strict=True):
            print(f"  {kind:<36}{field.dataType.simpleString()}")  # noqa: T201
            assert field.dataType.simpleString() == expected
    same = frame.select(
        *[frame[name].cast(field.dataType) for name, field in zip(found.columns, found.schema, strict=True)]
    )
    assert sorted(map(repr, found.collect())) == sorted(map(repr, same.toDF(*found.columns).collect()))


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_old_dates_are_read_as_stored_whatever_the_session_prefers(spark, tmp_path, table_type):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"], table_type=table_type)
    rows = [(1, dt.date(1500, 2, 3)), (2, dt.date(1, 1, 1))]
    table.upsert(spark.createDataFrame(rows, "id int, day date"))
    table.upsert(spark.createDataFrame(rows[:1], "id int, day date"))
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY")
    try:
        assert sorted((row.id, row.day) for row in table.snapshot().collect()) == rows
    finally:
        spark.conf.unset("spark.sql.parquet.datetimeRebaseModeInRead")


@pytest.mark.parametrize(("kind", "literal"), REFUSED, ids=[kind for kind, _ in REFUSED])
def test_a_type_hudi_cannot_hold_is_refused_by_name(spark, tmp_path, kind, literal):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
    with pytest.raises(SchemaError, match="'odd"):
        table.upsert(spark.sql(f"select 1 as id, {literal} as odd"))
    assert table.timeline() == []


@pytest.mark.parametrize("name", ["a b", "1st", "ä", "x-y"])
def test_a_column_name_avro_forbids_is_refused_by_name(spark, tmp_path, name):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
    with pytest.raises(SchemaError, match=name):
        table.upsert(spark.sql(f"select 1 as id, 2 as `{name}`"))


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ("int", "bigint", "bigint"),
        ("bigint", "int", "bigint"),
        ("int", "double", "double"),
        ("float", "double", "double"),
        ("int", "string", "string"),
    ],
)
def test_types_widen(spark, tmp_path, first, second, kept):
    table = HudiTable.create(
        spark,
        str(tmp_path / "t"),
        name="t",
        record_key=["id"],
        options={"hoodie.parquet.small.file.limit": "0", "hoodie.engine.schema.evolution": "any"},
    )
    table.upsert(spark.sql(f"select 1 as id, cast(7 as {first}) as v"))
    table.upsert(spark.sql(f"select 2 as id, cast(8 as {second}) as v"))
    found = {row.id: row.v for row in table.snapshot().collect()}
    assert dict(table.snapshot().dtypes)["v"] == kept
    assert {key: float(value) for key, value in found.items()} == {1: 7.0, 2: 8.0}


@pytest.mark.core
@pytest.mark.parametrize("second", ["bigint", "double", "string"])
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_names_in_sql_read_files_from_before_a_column_widened(spark, tmp_path, table_type, second):
    folder = tmp_path / "warehouse"
    table = HudiTable.create(
        spark,
        str(folder / "shop" / "t"),
        name="t",
        record_key=["id"],
        table_type=table_type,
        options={"hoodie.parquet.small.file.limit": "0", "hoodie.engine.schema.evolution": "any"},
    )
    table.insert(spark.sql("select id, cast(id as int) as v from range(9)"))
    table.upsert(spark.sql("select id, cast(id + 10 as int) as v from range(2)"))
    table.upsert(spark.sql(f"select id, cast(id + 20 as {second}) as v from range(1, 4)"))
    DirectoryCatalog(str(folder)).load(spark)
    try:
        found = {row.id: float(row.v) for row in spark.sql("select id, v from shop.t").collect()}
        assert found == {0: 10, 1: 21, 2: 22, 3: 23, **{number: number for number in range(4, 9)}}
        assert sorted(spark.table("shop.t").select("id", "v").collect()) == sorted(
            table.snapshot().select("id", "v").collect()
        )
    finally:
        spark.sql("drop database shop cascade")


@pytest.mark.core
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_struct_that_got_a_field_is_not_null_in_files_from_before(spark, tmp_path, table_type):
    folder, options = tmp_path / "warehouse", {"hoodie.parquet.small.file.limit": "0"}
    table = HudiTable.create(
        spark,
        str(folder / "shop" / "t"),
        name="t",
        record_key=["id"],
        table_type=table_type,
        options=options,
    )
    table.insert(
        spark.sql("select id, if(id = 2, null, named_struct('a', cast(id as int))) as s from range(3)")
    )
    table.upsert(spark.sql("select 3L as id, named_struct('a', 3, 'b', 'x') as s"))
    DirectoryCatalog(str(folder)).load(spark)
    gone = "s is null or s.b = 'x'"
    try:
        for rows in (spark.table("shop.t"), table.snapshot()):
            told = rows.selectExpr("id", "s is null", "s.b").collect()
            assert {tuple(row) for row in told} == {
                (0, False, None),
                (1, False, None),
                (2, True, None),
                (3, False, "x"),
            }
            assert {row.id for row in rows.where(gone).select("id").collect()} == {2, 3}
        table.delete_where(gone)
        assert {tuple(row) for row in table.snapshot().select("id", "s.a").collect()} == {(0, 0), (1, 1)}
    finally:
        spark.sql("drop database shop cascade")


@pytest.mark.parametrize(
    ("first", "second"), [("string", "array<int>"), ("date", "bigint"), ("array<int>", "int")]
)
def test_a_change_of_type_that_hudi_refuses_leaves_the_table_alone(spark, tmp_path, first, second):
    table = HudiTable.create(spark, str(tmp_path / "t"), name="t", record_key=["id"])
    table.upsert(spark.sql(f"select 1 as id, cast(null as {first}) as v"))
    with pytest.raises(SchemaError, match="'v'"):
        table.upsert(spark.sql(f"select 2 as id, cast(null as {second}) as v"))
    assert table.snapshot().count() == 1

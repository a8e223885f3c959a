"""The Spark form of the key rules gives what the key generators give."""

from __future__ import annotations

import datetime as dt
import decimal

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError, PathEscapeError, SchemaError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.keygen.generator import KeyGenerator, build_key_generator
from hudi_engine.format.keygen.partition_path import check_new_partition
from hudi_engine.format.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from hudi_engine.spark.write.rows.key_columns import rows_by_partition, with_key_columns
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

from tests.helpers.table_settings import version_6

pytestmark = pytest.mark.sampled

SPARK_DDL = (
    "s string, i int, l bigint, b boolean, f float, d double, money decimal(12,2), fine decimal(20,10), "
    "day date, at timestamp, raw binary, nested struct<code:string,deep:struct<n:bigint>>, part string"
)
ARROW = pa.schema(
    [
        ("s", pa.string()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("b", pa.bool_()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("money", pa.decimal128(12, 2)),
        ("fine", pa.decimal128(20, 10)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("raw", pa.binary()),
        ("nested", pa.struct([("code", pa.string()), ("deep", pa.struct([("n", pa.int64())]))])),
        ("part", pa.string()),
    ]
)
KEY_COLUMNS = [
    "s",
    "i",
    "l",
    "b",
    "f",
    "d",
    "money",
    "fine",
    "day",
    "at",
    "raw",
    "nested.code",
    "nested.deep.n",
]


def table_config(keys: str, partitions: str = "", keygen: str | None = None, **more: str) -> TableConfig:
    """Settings of a version 6 table; dots in names of ``more`` are written as two underscores."""
    generator = {} if keygen is None else {"hoodie.table.keygenerator.type": keygen}
    return version_6(keys, partitions, generator, more)


HIVE = {"datasource__write__hive_style_partitioning": "true"}
ENCODE = {"datasource__write__partitionpath__urlencode": "true"}
DATED = {
    "keygen__timebased__timestamp__type": "EPOCHMICROSECONDS",
    "keygen__timebased__output__dateformat": "yyyy/MM/dd HH",
}
CONFIGS = {
    **{f"simple key {name}": table_config(name) for name in KEY_COLUMNS},
    **{f"partition {name}": table_config("s", name, "SIMPLE", **HIVE, **ENCODE) for name in KEY_COLUMNS},
    "complex key": table_config("s,i,f,raw", "part,day", "COMPLEX"),
    "complex key, url encoding without hive style": table_config("s,l", "part,s", "COMPLEX", **ENCODE),
    "plain partition": table_config("s", "part", "SIMPLE"),
    "hive style": table_config("s", "part,b", "CUSTOM", **HIVE),
    "timestamp text": table_config(
        "at", "at", "SIMPLE", datasource__write__keygenerator__consistent__logical__timestamp__enabled="true"
    ),
    "timestamp partition": table_config("i", "at", "TIMESTAMP", **DATED),
    "timestamp of a number": table_config("i", "s:simple,l:timestamp", "CUSTOM", **HIVE, **ENCODE, **DATED),
    "generated keys": table_config("", "part", "SIMPLE"),
    "no partitions": table_config("s,i", "", "NON_PARTITION"),
}

TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6),
    st.sampled_from(
        ["", "a/b", "x=y", "50%", "a:b,c", "ä/😀", "..", ".", ".hoodie", "{[]}^", "\\", "'\"", "\n", "é%2F"]
    ),
)
INSTANTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1), timezones=st.just(dt.timezone.utc))


def decimals(digits: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    bound = 10**digits - 1
    return st.integers(-bound, bound).map(lambda units: decimal.Decimal(units).scaleb(-scale))


ROWS = st.fixed_dictionaries(
    {
        "s": st.none() | TEXTS,
        "i": st.none() | st.integers(-(2**31), 2**31 - 1),
        "l": st.none() | st.integers(-(2**50), 2**50),
        "b": st.none() | st.booleans(),
        "f": st.none() | st.floats(width=32),
        "d": st.none() | st.floats() | st.integers(-(10**9), 10**9).map(lambda units: units / 100),
        "money": st.none() | decimals(12, 2),
        "fine": st.none() | decimals(20, 10) | decimals(5, 10),
        "day": st.none() | st.dates(),
        "at": st.none() | INSTANTS,
        "raw": st.none() | st.binary(max_size=5),
        "nested": st.none()
        | st.fixed_dictionaries(
            {
                "code": st.none() | TEXTS,
                "deep": st.none() | st.fixed_dictionaries({"n": st.none() | st.integers(-5, 5)}),
            }
        ),
        "part": st.none() | TEXTS,
    }
)


def generated_rows(count: int) -> list[dict[str, object]]:
    """Rows that stay the same from run to run."""
    rows: list[dict[str, object]] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(ROWS)
    def collect(row: dict[str, object]) -> None:
        rows.append(row)

    collect()
    return rows


def partition_path(generator: KeyGenerator, row: pa.Table) -> str | None:
    """The partition path of one row, None when it is refused."""
    try:
        return str(generator.partition_paths(row)[0])
    except PathEscapeError:
        return None


@pytest.fixture(scope="module")
def rows() -> list[dict[str, object]]:
    return generated_rows(300)


@pytest.mark.parametrize(("ansi", "zone"), [("true", "America/New_York"), ("false", "Asia/Kolkata")])
def test_spark_columns_equal_the_key_generators(spark, rows, ansi, zone):
    """All key and partition kinds at once, in one job, whatever the session's ANSI mode and zone."""
    old = {name: spark.conf.get(name) for name in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")}
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        df = spark.createDataFrame([{"n": n, **row} for n, row in enumerate(rows)], f"n int, {SPARK_DDL}")
        schema = ARROW.insert(0, pa.field("n", pa.int32()))
        for number, config in enumerate(CONFIGS.values()):
            df = with_key_columns(df, config, schema=schema)
            for name, kept in ((RECORD_KEY, f"key{number}"), (PARTITION_PATH, f"path{number}")):
                if name in df.columns:
                    df = df.withColumnRenamed(name, kept)
        found = sorted((row.asDict() for row in df.collect()), key=lambda row: row["n"])
    finally:
        for name, value in old.items():
            spark.conf.set(name, value)
    table = pa.Table.from_pylist(rows, schema=ARROW)
    for number, (name, config) in enumerate(CONFIGS.items()):
        generator = build_key_generator(config)
        keys = generator.record_keys_or_null(table)
        if keys is None:
            assert f"key{number}" not in found[0]
        else:
            assert [row[f"key{number}"] for row in found] == keys.to_pylist(), name
        for row, path in zip(found, (partition_path(generator, table.slice(n, 1)) for n in range(len(rows)))):
            if path is None:
                with pytest.raises(PathEscapeError):
                    check_new_partition(row[f"path{number}"])
            else:
                assert row[f"path{number}"] == path, name


@pytest.mark.parametrize(
    "name",
    [
        "complex key",
        "hive style",
        "partition nested.code",
        "partition day",
        "partition money",
        "generated keys",
        "simple key f",
        "partition d",
        "timestamp partition",
        "no partitions",
    ],
)
def test_rows_counted_by_raw_values_are_those_of_the_partition_paths(spark, rows, name):
    """Of one path there may be several counts: of null and of an empty text, here."""
    df = spark.createDataFrame(rows, SPARK_DDL).union(spark.createDataFrame(rows[:50], SPARK_DDL))
    config = CONFIGS[name]
    if name == "complex key":
        config = table_config("s,i,raw", "part,day", "COMPLEX")
    options = resolve_options(None)
    keyed = with_key_columns(df, config, schema=ARROW)
    counted = rows_by_partition(keyed, config, schema=ARROW, options=options).collect()
    found: dict[str, list[int]] = {}
    for row in counted:
        sums = found.setdefault(row[PARTITION_PATH], [0, 0])
        sums[0] += row["rows"]
        sums[1] += row["keyless"]
    lacks = F.col(RECORD_KEY).isNull() if RECORD_KEY in keyed.columns else F.lit(False)
    wanted = (
        keyed.groupBy(PARTITION_PATH).agg(F.count("*").alias("n"), F.count_if(lacks).alias("k")).collect()
    )
    assert found == {row[PARTITION_PATH]: [row.n, row.k] for row in wanted}


def test_a_column_that_cannot_be_a_key_is_refused_before_spark_runs(spark):
    schema = pa.schema([("tags", pa.list_(pa.string()))])
    df = spark.createDataFrame([(["a"],)], "tags array<string>")
    with pytest.raises(SchemaError, match="list<.*cannot be a record key"):
        with_key_columns(df, table_config("tags"), schema=schema)


def test_numbers_without_a_timestamp_type_are_refused_before_spark_runs(spark):
    schema = pa.schema([("s", pa.string()), ("n", pa.int64())])
    df = spark.createDataFrame([("a", 1)], "s string, n bigint")
    config = table_config("s", "n", "TIMESTAMP", keygen__timebased__output__dateformat="yyyy")
    with pytest.raises(ConfigError, match=r"timestamp\.type is not set"):
        with_key_columns(df, config, schema=schema)


def test_columns_with_odd_names_are_found(spark):
    schema = pa.schema([("a`b", pa.string()), ("Mixed", pa.int32())])
    df = spark.createDataFrame([("x", 7)], "`a``b` string, Mixed int")
    row = with_key_columns(df, table_config("a`b,mixed"), schema=schema).collect()[0]
    assert row[RECORD_KEY] == "a`b:x,mixed:7"

"""Rows of chosen files: their columns together with those of earlier files, and files that cannot be read."""

from __future__ import annotations

import bz2
import gzip
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.storage import open_storage
from hudi_engine.spark.catalog import PlainFiles
from hudi_engine.spark.catalog.new_files import read_new_files, wider
from hudi_engine.table.changes.new_files import list_files
from pyspark.sql import types as T


class Landing:
    """A folder of files of one format."""

    def __init__(self, spark, path: Path, using: str, columns=(), partitions=(), **options: str) -> None:
        self.spark, self.path = spark, path / "lan ding"
        self.source = PlainFiles(str(self.path), using, options, columns, partitions)

    def put(self, name: str, content: str | bytes) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def read(self, noted: str = "", *, names: str = "*", sets_aside: bool = False):
        files = list_files(open_storage(str(self.path)), names=names)
        return read_new_files(self.spark, self.source, files, noted, sets_aside=sets_aside)

    def rows(self, noted: str = "", **given):
        found = self.read(noted, **given).frame.drop("_metadata")
        return found.columns, sorted((tuple(row) for row in found.collect()), key=str)


@pytest.fixture
def landing(spark, tmp_path):
    return lambda using, **options: Landing(spark, tmp_path, using, **options)


def parquet(**columns) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


def kinds(rows) -> dict[str, str]:
    return {each.name: each.dataType.simpleString() for each in rows.frame.drop("_metadata").schema}


def test_csv_columns_go_by_their_names(landing):
    files = landing("csv", header="true", inferSchema="true", comment="#")
    files.put("a.csv", "id,name\n1,x\n")
    files.put("b.csv", "# moved\n\nname,id\ny,2\n")
    files.put("c.csv.gz", gzip.compress(b"id,amount\n3,1.5\n"))
    files.put("d.csv.bz2", bz2.compress(b"id,name,day\n4,z,2026-01-02\n"))
    files.put("e.csv", "")
    names, rows = files.rows()
    assert names == ["id", "name", "amount", "day"]
    assert [row[:3] for row in rows] == [(1, "x", None), (2, "y", None), (3, None, 1.5), (4, "z", None)]
    assert kinds(files.read()) == {"id": "int", "name": "string", "amount": "double", "day": "date"}


def test_declared_columns_name_those_of_csv_files_without_a_header(landing):
    files = landing("csv", columns=[("id", "int"), ("name", "")], partitions=[("day", "string")])
    files.put("day=1/a.csv", "1,x\n")
    files.put("day=2/b.csv", "2,y\n")
    assert files.rows() == (["id", "name", "day"], [(1, "x", "1"), (2, "y", "2")])
    files.put("day=2/c.csv", "three,z\n")
    with pytest.raises(Exception, match=r"c\.csv"):
        files.rows()
    found = files.read(sets_aside=True)
    assert [file.path for file, _ in found.bad] == ["day=2/c.csv"] and found.frame.count() == 2


def test_times_in_nanoseconds_are_read_next_to_others(landing):
    files = landing("parquet", mergeSchema="true")
    moment = datetime(2026, 1, 2, 3, 4, 5, 678901)
    for unit in ("ns", "us"):
        files.put(unit, parquet(at=pa.array([moment], pa.timestamp(unit, "UTC")), id=[unit]))
    assert files.rows() == (["at", "id"], [(moment, "ns"), (moment, "us")])
    files.put("us", b"")
    files.put("ns", parquet(at=pa.array([moment], pa.timestamp("ns"))))
    assert kinds(files.read()) == {"at": "timestamp_ntz"} and files.rows()[1] == [(moment,)]


def test_files_without_the_folders_of_others_are_read_too(landing):
    files = landing("json")
    files.put("a [1]{x}*.json", '{"id": 1}')
    files.put("day=2026-01-01/b%20.json", '{"id": 2}')
    files.put("day=7/b.json", '{"id": 3}')
    assert files.rows() == (["id", "day"], [(1, None), (2, "2026-01-01"), (3, "7")])
    assert files.rows(names="b*") == (["id", "day"], [(2, "2026-01-01"), (3, "7")])
    files.put("c", '{"id": 8}')
    (path,) = files.read(names="c").frame.select("_metadata.file_path").first()
    assert path.endswith(("/lan ding/c", "/lan%20ding/c"))


def test_columns_of_earlier_files_stay_with_their_types(landing, tmp_path):
    files = landing("json")
    files.put("1.json", '{"id": 1, "amount": 5, "at": {"x": 1}, "tags": ["a"]}')
    first = files.read()
    files.put("1.json", '{"id": 2, "new": true, "at": {"y": 2.5}}')
    second = files.read(first.columns)
    assert kinds(second) == {
        "amount": "bigint",
        "at": "struct<x:bigint,y:double>",
        "id": "bigint",
        "tags": "array<string>",
        "new": "boolean",
    }
    files.put("1.json", '{"id": 3, "amount": "five"}')
    third = files.read(second.columns)
    assert kinds(third)["amount"] == "string", "a type that holds both"
    assert [row.amount for row in third.frame.collect()] == ["five"]
    files.put("1.json", '{"id": 4, "amount": 6}')
    assert kinds(files.read(third.columns))["amount"] == "bigint", "one odd file changes no later one"


def test_parquet_files_of_several_types_are_read_together(landing):
    files = landing("parquet")
    files.put("1.parquet", parquet(id=pa.array([1], pa.int32())))
    files.put("2.parquet", parquet(id=pa.array([2**40], pa.int64()), more=["x"]))
    files.put("3.parquet", parquet(id=pa.array([3], pa.int32())))
    assert files.rows() == (["id", "more"], [(1, None), (1099511627776, "x"), (3, None)])
    earlier = T._parse_datatype_string("gone int, ID string").json()
    found = files.read(earlier)
    assert kinds(found) == {"gone": "int", "ID": "bigint", "more": "string"}


BAD = {
    "json": ({}, '{"id": 1}\n', '{"id": 1}\n{"id": \n'),
    "csv": ({"header": "true"}, "id,name\n1,x\n", "id,name\n1\n"),
    "parquet": ({}, parquet(id=[1]), b"PAR1 is no file PAR1"),
    "typed csv": ({"header": "true", "inferSchema": "true"}, "id,name\n1,x\n", "id,name\n1,x,y\n"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_fails_by_its_name_or_is_set_aside(landing, kind):
    options, good, bad = BAD[kind]
    files = landing(kind.split()[-1], **options)
    for number in range(7):
        files.put(f"{number}.x", bad if number in (2, 5) else good)
    with pytest.raises(Exception, match=r"2\.x"):
        files.rows()
    found = files.read(sets_aside=True)
    assert sorted(file.path for file, _ in found.bad) == ["2.x", "5.x"]
    assert all(reason for _, reason in found.bad)
    assert found.frame.count() == 5


def test_only_bad_files_leave_the_columns_of_earlier_ones(landing):
    files = landing("parquet")
    files.put("1", b"PAR1 is no file PAR1")
    with pytest.raises(ConfigError, match=r"Spark finds no columns in the new files of .*/1: "):
        files.read(sets_aside=True)
    noted = T._parse_datatype_string("id int").json()
    found = files.read(noted, sets_aside=True)
    assert (found.frame.count(), kinds(found), len(found.bad)) == (0, {"id": "int"}, 1)
    assert "file_modification_time" in found.frame.schema["_metadata"].dataType.names


def test_columns_that_are_not_in_lines_are_found(landing):
    files = landing("json", multiLine="true")
    files.put("a", '{"id":\n 1}')
    assert files.rows() == (["id"], [(1,)])
    files = landing("csv", encoding="ISO-8859-1", header="true")
    files.put("a", "naïf\né".encode("latin-1"))
    assert files.rows() == (["naïf"], [("é",)])


def test_a_folder_above_the_location_is_no_column(landing):
    files = landing("csv", header="true")
    files.path = files.path / "year=2026"
    files.source = replace(files.source, location=str(files.path))
    files.put("day=1/a", "id\n1\n")
    assert files.rows() == (["id", "day"], [("1", 1)])


@pytest.mark.parametrize("using", ["csv", "json", "parquet"])
def test_spark_asks_no_storage_for_the_files(landing, spark, using):
    files = landing(using, header="true")
    content = {"csv": "id\n1\n", "json": '{"id": "1"}', "parquet": parquet(id=["1"])}[using]
    for number in range(40):
        files.put(f"{number // 10}/{number}", content)
    spark.sparkContext.setJobGroup(using, using)
    assert files.rows() == (["id"], [("1",)] * 40)
    tracker = spark.sparkContext.statusTracker()
    stages = [stage for job in tracker.getJobIdsForGroup(using) for stage in tracker.getJobInfo(job).stageIds]
    # a listing has a task for each file
    assert 0 < sum(tracker.getStageInfo(stage).numTasks for stage in stages) < 40


def test_an_empty_parquet_file_has_no_rows(landing):
    files = landing("parquet")
    files.put("1", b"")
    files.put("2", parquet(id=[1]))
    assert files.rows() == (["id"], [(1,)])


def test_an_option_that_would_lose_files_is_refused(landing):
    with pytest.raises(ConfigError, match=r"'ignoreCorruptFiles'; bad_files='skip' sets such files aside"):
        landing("json", ignoreCorruptFiles="true").read()
    with pytest.raises(ConfigError, match=r"pathGlobFilter is '\{a,b\}'; legal values:"):
        landing("json").read(names="{a,b}")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("int", "bigint", "bigint"),
        ("bigint", "double", "double"),
        ("date", "timestamp", "timestamp"),
        ("boolean", "int", "string"),
        ("struct<a:int>", "int", "string"),
        ("map<string,int>", "map<string,bigint>", "map<string,bigint>"),
    ],
)
def test_the_type_of_two_holds_both(spark, one, other, expected):
    left, right = (T._parse_datatype_string(f"v {each}")["v"].dataType for each in (one, other))
    assert wider(left, right).simpleString() == wider(right, left).simpleString() == expected


def test_whole_numbers_and_fractions_of_parquet_files_are_refused_together(landing):
    files = landing("parquet")
    files.put("a.parquet", parquet(v=pa.array([1.5])))
    files.put("b.parquet", parquet(v=pa.array([2**60 + 3])))
    with pytest.raises(ConfigError, match=r"column v is (double|bigint) in some of the new Parquet files"):
        files.read()
    assert files.rows(names="b*") == (["v"], [(2**60 + 3,)])

"""`hudi_engine.read`: a table's rows without Spark, filters and columns pushed down."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hudi_engine
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hudi_engine import ConfigError, SchemaError
from hudi_engine.cli import main
from hudi_engine.table.services import clean
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.golden import NAMES, description, unpack
from tests.golden.stories import STORIES
from tests.helpers.handmade import HandmadeTable, file_id
from tests.judge.arrow_rows import rows_of_arrow
from tests.judge.rows import difference
from tests.unit.services.tables import options

DISPUTED = {story.name: story.disputed for story in STORIES}
SCHEMA = pa.schema([("id", pa.string()), ("amount", pa.int64()), ("dt", pa.string())])


def rows(*values: tuple[str, int | None, str]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, each)) for each in values], SCHEMA)


@pytest.fixture(scope="module")
def partitioned(tmp_path_factory: pytest.TempPathFactory) -> str:
    table = HandmadeTable(tmp_path_factory.mktemp("read") / "t", SCHEMA, ("dt",))
    table.commit(
        {
            "dt=x": {file_id(): rows(("a", 1, "x"), ("b", None, "x"))},
            "dt=y": {file_id(): rows(("c", 3, "y"), ("d", 4, "y")), file_id(): rows(("e", 5, "y"))},
        }
    )
    return str(table.path)


def ids(found: hudi_engine.Rows) -> list[str]:
    return sorted(found.to_arrow().column("id").to_pylist())


@pytest.mark.parametrize("name", NAMES)
def test_all_rows_are_those_that_apache_hudi_reads(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    found = hudi_engine.read(path)
    own = found.schema.names
    meta = [
        each for each in description(name)["snapshot"][0] if each.startswith("_hoodie_") and each not in own
    ]

    everything = hudi_engine.read(path, columns=[*meta, *own]).to_arrow()

    expected = description(name)["snapshot"]
    assert difference(rows_of_arrow(everything.drop_columns(DISPUTED[name])), expected) == ""


@pytest.mark.parametrize("name", NAMES)
def test_a_moment_of_the_past_is_read_as_it_was(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)

    for instant, expected in description(name)["as_of"].items():
        assert hudi_engine.read(path, as_of=instant).to_arrow().num_rows == len(expected)


@pytest.mark.parametrize("name", NAMES)
def test_filtered_rows_are_the_rows_that_pass_the_filter(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    everything = hudi_engine.read(path).to_arrow()

    for field in everything.schema:
        if pa.types.is_nested(field.type):
            continue
        for value in everything.column(field.name).drop_null().unique().slice(0, 2).to_pylist():
            by_tuple = hudi_engine.read(path, filters=[(field.name, "=", value)]).to_arrow()
            naive = [row for row in everything.to_pylist() if row[field.name] == value]
            assert sorted(map(repr, by_tuple.to_pylist())) == sorted(map(repr, naive)), (field.name, value)


def test_columns_come_in_the_order_asked_for_and_meta_columns_when_named(partitioned: str) -> None:
    assert hudi_engine.read(partitioned).schema.names == ["id", "amount", "dt"]
    found = hudi_engine.read(partitioned, columns=["amount", "_hoodie_record_key"]).to_arrow()
    assert found.column_names == ["amount", "_hoodie_record_key"]


def test_a_filter_may_look_at_columns_that_are_not_asked_for(partitioned: str) -> None:
    found = hudi_engine.read(partitioned, columns=["id"], filters=[("amount", ">", 3), ("dt", "in", ["y"])])

    assert ids(found) == ["d", "e"]
    assert found.to_arrow().column_names == ["id"]


def test_tuples_lists_of_tuples_and_expressions_are_filters(partitioned: str) -> None:
    def by(filters: Any) -> list[str]:
        return ids(hudi_engine.read(partitioned, filters=filters))

    assert by([("amount", "=", 1)]) == ["a"]
    assert by([[("amount", "=", 1)], [("dt", "=", "y"), ("amount", ">=", 4)]]) == ["a", "d", "e"]
    assert by(pc.field("amount").is_null()) == ["b"]
    assert by((pc.field("amount") > 1) & (pc.field("id") != "c")) == ["d", "e"]


@given(
    partition=st.sampled_from(["x", "y", "z", None]),
    low=st.integers(0, 6),
    either=st.booleans(),
    negated=st.booleans(),
)
def test_whatever_is_pruned_the_rows_are_right(
    partitioned: str, partition: str | None, low: int, either: bool, negated: bool
) -> None:
    by_partition = pc.field("dt") == partition if partition is not None else pc.field("dt").is_null()
    by_partition = ~by_partition if negated else by_partition
    by_value = pc.field("amount") >= low
    expression = by_partition | by_value if either else by_partition & by_value

    found = hudi_engine.read(partitioned, filters=expression)

    naive = hudi_engine.read(partitioned).to_arrow().filter(expression)
    assert ids(found) == sorted(naive.column("id").to_pylist())


def test_the_log_states_how_many_files_a_filter_rules_out(
    partitioned: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "hudi_engine.table.data_skipping.plan"):
        hudi_engine.read(partitioned, filters=[("dt", "=", "x")]).files()
    assert "1 of 3 file slices are read" in caplog.text


def test_partitions_that_a_filter_rules_out_are_not_opened(partitioned: str, tmp_path: Path) -> None:
    found = hudi_engine.read(partitioned, filters=[("dt", "=", "y")])

    assert {each.partition for each in found.files()} == {"dt=y"}
    assert {each.partition for each in hudi_engine.read(partitioned, filters=[("dt", "<", "y")]).files()} == {
        "dt=x"
    }
    assert hudi_engine.read(partitioned, filters=[("dt", "=", "z")]).files() == []


@pytest.mark.parametrize("name", ["~", "~root", "~ ", "-", " ", "%7E"])
@pytest.mark.parametrize("below", [False, True], ids=["alone", "with folders below"])
def test_a_folder_of_any_name_is_read_with_filters(tmp_path: Path, name: str, below: bool) -> None:
    columns = ("dt", "id") if below else ("dt",)
    plain = {"hoodie.datasource.write.hive_style_partitioning": "false"}
    plain["hoodie.datasource.write.partitionpath.urlencode"] = "false"
    table = HandmadeTable(tmp_path / "t", SCHEMA, columns, properties=plain)
    folders = {each: f"{each}/a" if below else each for each in (name, "y")}
    table.commit({folder: {file_id(): rows(("a", 1, each))} for each, folder in folders.items()})

    for filters in ([("amount", ">", 0)], [("amount", ">", 0), ("dt", "=", name)], [("id", "=", "a")]):
        found = hudi_engine.read(table.path, filters=filters).to_arrow()["dt"].to_pylist()
        assert sorted(found) == sorted([name] if len(filters) == 2 else [name, "y"])
    only = hudi_engine.read(table.path, filters=[("dt", "=", name)]).files()
    assert [each.partition for each in only] == [folders[name]]


def test_row_groups_that_a_filter_rules_out_are_not_read(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", SCHEMA)
    table.commit({"": {file_id(): rows(*[(f"{n:05d}", n, "x") for n in range(4000)])}})
    file = tmp_path / "t" / hudi_engine.read(tmp_path / "t").files()[0].path
    content = pq.read_table(file)
    pq.write_table(content, file, row_group_size=1000, compression="none", use_dictionary=False)
    # The pages of every row group but the third become rubbish; its statistics stay in the footer.
    third = pq.read_metadata(file).row_group(2)
    offsets = [third.column(n).data_page_offset for n in range(third.num_columns)]
    start, end = min(offsets), min(offsets) + third.total_byte_size
    data = bytearray(file.read_bytes())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    data[4:start], data[end:footer] = b"\xff" * (start - 4), b"\xff" * (footer - end)
    file.write_bytes(bytes(data))

    found = hudi_engine.read(tmp_path / "t", filters=[("amount", ">=", 2100), ("amount", "<", 2103)])

    assert ids(found) == ["02100", "02101", "02102"]
    with pytest.raises(hudi_engine.CorruptTableError):
        hudi_engine.read(tmp_path / "t").to_arrow()


def test_a_time_without_a_zone_is_compared_as_utc(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC"))])
    table = HandmadeTable(tmp_path / "t", schema)
    days = [datetime.datetime(2026, 1, day, tzinfo=datetime.timezone.utc) for day in (1, 2, 3)]
    table.commit({"": {file_id(): pa.table({"id": ["a", "b", "c"], "at": days}, schema)}})
    since = datetime.datetime(2026, 1, 2)
    assert ids(hudi_engine.read(table.path, filters=[("at", ">=", since)])) == ["b", "c"]
    assert ids(hudi_engine.read(table.path, filters=[("at", "in", [since])])) == ["b"]


def test_the_folder_of_nulls_is_not_taken_for_a_value(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", SCHEMA, ("dt",))
    folder = "dt=__HIVE_DEFAULT_PARTITION__"
    table.commit({folder: {file_id(): rows(("a", 1, ""))}, "dt=x": {file_id(): rows(("b", 2, "x"))}})

    assert ids(hudi_engine.read(tmp_path / "t", filters=[("dt", "=", "")])) == ["a"]


BY_HUDI = {"hoodie.partition.metafile.use.base.format": "false"}
SLASHED = {
    "hoodie.datasource.write.slash.separated.date.partitioning": "true",
    "hoodie.datasource.write.hive_style_partitioning": "false",
}


@pytest.mark.parametrize(
    ("properties", "folder", "value"),
    [
        (
            {"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator", **BY_HUDI},
            "dt=202403",
            "1709251200000",
        ),
        ({"hoodie.table.keygenerator.class": "com.acme.OwnKeyGenerator"}, "dt=whatever", "x"),
        (SLASHED, "2024/03/15", "2024-03-15"),
    ],
    ids=["a time of a custom generator", "somebody's own generator", "slashes for dashes"],
)
def test_folders_that_may_not_say_the_values_rule_out_no_partition(
    properties: dict[str, str], folder: str, value: str, tmp_path: Path
) -> None:
    table = HandmadeTable(tmp_path / "t", SCHEMA, ("dt",), properties=properties)
    table.commit({folder: {file_id(): rows(("a", 1, value))}})

    assert ids(hudi_engine.read(table.path, filters=[("dt", "=", value)])) == ["a"]
    assert ids(hudi_engine.read(table.path, filters=[("dt", "!=", value)])) == []


def test_slashes_that_stand_for_dashes_are_told_as_dashes(tmp_path: Path) -> None:
    left_out = {**SLASHED, "hoodie.datasource.write.drop.partition.columns": "true"}
    stored = pa.schema([SCHEMA.field("id"), SCHEMA.field("amount")])
    table = HandmadeTable(tmp_path / "t", stored, ("dt",), properties=left_out)
    table.commit({"2024/03/15": {file_id(): pa.table({"id": ["a"], "amount": [1]}, stored)}})

    assert hudi_engine.read(table.path).to_arrow()["dt"].to_pylist() == ["2024-03-15"]


def test_logs_are_merged_before_a_filter_looks_at_the_rows(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", SCHEMA, merge_on_read=True)
    group = file_id()
    first = table.commit({"": {group: rows(("a", 1, "x"), ("b", 2, "x"))}})
    second = table.next_instant()
    blocks = table.data_blocks("", group, rows(("a", 7, "x")), second)
    table.complete(second, [table.append_log("", group, first, blocks, second)])

    assert ids(hudi_engine.read(table.path, filters=[("amount", "=", 1)])) == []
    assert ids(hudi_engine.read(table.path, filters=[("amount", ">", 5)])) == ["a"]


def test_rows_go_to_pandas_polars_and_duckdb_and_to_whatever_takes_arrow(partitioned: str) -> None:
    found = hudi_engine.read(partitioned, filters=[("amount", ">", 3)])
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")

    assert sorted(found.to_pandas()["id"]) == ["d", "e"]
    assert sorted(found.to_polars()["id"]) == ["d", "e"]
    assert found.to_duckdb(duckdb.connect()).aggregate("sum(amount)").fetchall() == [(9,)]
    assert sorted(polars.DataFrame(found)["amount"]) == [4, 5]
    assert pa.table(found).num_rows == 2
    assert sum(batch.num_rows for batch in found.batches()) == 2


def test_a_library_that_is_not_there_is_named(partitioned: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ConfigError, match=r"to_polars\(\) needs the package polars.*pip install polars"):
        hudi_engine.read(partitioned).to_polars()


@pytest.mark.parametrize(
    ("asked", "kind", "said"),
    [
        ({"columns": ["ids"]}, SchemaError, "unknown columns 'ids'; the table has"),
        ({"filters": [("id", "in", "ab")]}, ConfigError, r"letters of 'ab'; give a list: \['ab'\]"),
        ({"filters": [("id", "=", None)]}, ConfigError, r"use pyarrow.compute.field\('id'\).is_null\(\)"),
        ({"columns": []}, ConfigError, "at least one name and each once"),
        ({"columns": ["id", "id"]}, ConfigError, r"\['id', 'id'\]; give at least one name and each once"),
        ({"columns": "id"}, ConfigError, r"give a list of names, such as \['id'\]"),
        ({"filters": [("ids", "=", 1)]}, SchemaError, "names an unknown column"),
        ({"filters": [("id", "like", "a%")]}, ConfigError, "one of the operators =, ==, !="),
        ({"filters": ("id", "=", "a")}, ConfigError, "is no filter; write"),
        ({"filters": []}, ConfigError, "is no filter; write"),
        ({"filters": "id = 'a'"}, ConfigError, "is no filter; write"),
        (
            {"filters": [("amount", "=", "a")]},
            SchemaError,
            "compares 'amount', a column of type int64, with 'a', a str",
        ),
        ({"filters": [("amount", "in", ["a"])]}, SchemaError, "a column of type int64, with 'a', a str"),
        ({"filters": [("amount", "in", {"a": 1})]}, ConfigError, "needs a list of values"),
        ({"filters": [("amount", "in", 5)]}, ConfigError, "needs a list of values"),
        ({"filters": pc.field("nope") == 1}, SchemaError, "cannot be evaluated over the table"),
        ({"as_of": "tomorrow"}, hudi_engine.TimelineError, "no point in time"),
    ],
)
def test_what_cannot_be_read_is_said_at_once(
    asked: dict[str, Any], kind: type[Exception], said: str, partitioned: str
) -> None:
    with pytest.raises(kind, match=said):
        hudi_engine.read(partitioned, **asked)


def test_a_state_before_the_first_commit_has_the_columns_and_no_rows_and_it_is_said(
    partitioned: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = hudi_engine.read(partitioned, as_of="1999-01-01", columns=["id"], filters=[("dt", "=", "x")])

    assert found.to_arrow().schema.names == ["id"] and found.to_arrow().num_rows == 0
    assert "has no rows: its oldest commit is 2026" in caplog.text


def test_case_makes_no_difference_in_names(partitioned: str) -> None:
    found = hudi_engine.read(partitioned, columns=["ID"], filters=[("Dt", "=", "x")])

    assert ids(found) == ["a", "b"]


def test_files_that_a_clean_took_before_they_were_listed_are_an_error_and_not_fewer_rows(
    tmp_path: Path,
) -> None:
    table, group = HandmadeTable(tmp_path / "t", SCHEMA), file_id()
    table.commit({"": {group: rows(("a", 1, "x"))}})
    listed, early = hudi_engine.read(table.path), hudi_engine.read(table.path)
    table.commit({"": {group: rows(("a", 2, "x"))}})
    assert listed.to_arrow()["amount"].to_pylist() == [1], "writes alone take nothing"
    table.commit({"": {group: rows(("a", 3, "x"))}})
    clean(table.storage, options(), retain_commits=1)

    for late in (early.to_arrow, early.files, lambda: list(early.batches())):
        with pytest.raises(
            hudi_engine.TimelineError, match="was cleaned, .* before its files were listed.*Read again"
        ):
            late()
    assert hudi_engine.read(table.path).to_arrow()["amount"].to_pylist() == [3]


def test_a_clean_that_keeps_what_a_reader_needs_is_no_error_beside_a_write_that_ends_meanwhile(
    tmp_path: Path,
) -> None:
    table, group = HandmadeTable(tmp_path / "t", SCHEMA), file_id()
    for number in (1, 2, 3):
        table.commit({"": {group: rows(("a", number, "x"))}})
    late = table.next_instant()
    table.storage.create(f".hoodie/{late}.commit.requested", b"")
    found = hudi_engine.read(table.path)
    table.complete(late, [table.write_file("", group, rows(("a", 4, "x")), late)])
    assert clean(table.storage, options(), retain_commits=2).files_deleted

    assert found.to_arrow()["amount"].to_pylist() == [3]
    assert hudi_engine.read(table.path).to_arrow()["amount"].to_pylist() == [4]


def test_a_table_without_a_commit_has_columns_and_no_rows(tmp_path: Path) -> None:
    found = hudi_engine.read(HandmadeTable(tmp_path / "t", SCHEMA).path)

    assert found.to_arrow().num_rows == 0
    assert found.schema.names == SCHEMA.names
    assert repr(found) == f"hudi_engine.read({str(tmp_path / 't')!r}, columns=['id', 'amount', 'dt'])"


@pytest.mark.parametrize(
    "look",
    [
        lambda path: hudi_engine.read(path).to_arrow(),
        lambda path: main([path, "timeline"]) and pytest.fail("the command found no table"),
    ],
    ids=["rows", "command line"],
)
def test_whoever_looks_at_a_table_whose_rebuild_was_cut_off_finds_it(
    look: Callable[[str], object], tmp_path: Path
) -> None:
    for name, key in ((".t.replaced-1", "old"), (".t.rebuild-1", "new")):
        HandmadeTable(tmp_path / name, SCHEMA, ("dt",)).commit({"dt=x": {file_id(): rows((key, 1, "x"))}})

    look(str(tmp_path / "t"))

    assert [each.name for each in tmp_path.iterdir()] == ["t"]
    assert ids(hudi_engine.read(tmp_path / "t")) == ["new"]

"""Reading a slice: merge types, columns, filters, ranges of instants, changed schemas."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hudi_engine.errors import (
    ConfigError,
    CorruptTableError,
    SchemaError,
    TimelineError,
    UnsupportedTableError,
)
from hudi_engine.format.filegroup.base_file import BaseFile
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.logformat.format import HeaderKey
from hudi_engine.format.logformat.writer import encode_data_blocks
from hudi_engine.format.merge.slice_reader import (
    read_base_file,
    read_slice,
    read_unmerged_logs,
    resolve_delta,
)
from hudi_engine.format.schema.avro import arrow_to_avro
from hudi_engine.format.schema.internal_schema import parse_history
from hudi_engine.format.schema.meta_fields import META_FIELDS, with_meta_columns
from slices import DATA, LATEST, SliceBuilder, config, data_rows, deletes, instant, row, upserts


@pytest.fixture
def mixed(builder: SliceBuilder) -> SliceBuilder:
    """``a`` updated, ``b`` untouched, ``c`` deleted, ``d`` new."""
    builder.add_base([row("a", 1, 1), row("b", 1, 1), row("c", 1, 1)])
    return builder.add_log(upserts([row("a", 2, 2), row("d", 2, 2)], 2) + deletes(["c"], 2))


@pytest.mark.parametrize(
    ("merge_type", "expected"),
    [
        ("payload_combine", [("a", 2), ("b", 1), ("d", 2)]),
        ("base_only", [("a", 1), ("b", 1), ("c", 1)]),
        ("log_only", [("a", 2), ("d", 2)]),
        ("skip_merge", [("a", 1), ("a", 2), ("b", 1), ("c", 1), ("d", 2)]),
    ],
)
def test_merge_types(mixed: SliceBuilder, merge_type: str, expected: list[tuple[str, int]]) -> None:
    rows = read_slice(mixed.context(config()), mixed.build(), merge_type=merge_type)

    assert [(found["id"], found["a"]) for found in data_rows(rows)] == expected
    assert rows.schema.names == [*META_FIELDS, *DATA.names]


@pytest.mark.parametrize("deletes_a_row", [True, False], ids=["with a delete", "without"])
@pytest.mark.parametrize("columns", [["id", "a"], ["b"], ["a"]], ids=",".join)
@pytest.mark.parametrize(
    ("merge_type", "expected", "deleted"),
    [
        ("payload_combine", ["a2", "b1", "d2"], ["c1"]),
        ("base_only", ["a1", "b1", "c1"], []),
        ("log_only", ["a2", "d2"], []),
        ("skip_merge", ["a1", "a2", "b1", "c1", "d2"], []),
        ("unmerged", ["a2", "d2", "d3"], []),
    ],
)
def test_every_merge_type_with_any_columns_and_deletes(
    builder: SliceBuilder,
    merge_type: str,
    expected: list[str],
    deleted: list[str],
    columns: list[str],
    deletes_a_row: bool,
) -> None:
    builder.add_base([row("a", 1, 1, "a1"), row("b", 1, 1, "b1"), row("c", 1, 1, "c1")])
    builder.add_log(upserts([row("a", 2, 2, "a2"), row("d", 2, 2, "d2")], 2))
    if merge_type == "unmerged":
        builder.add_log(upserts([row("d", 3, 3, "d3")], 3))
    if deletes_a_row:
        builder.add_log(deletes(["c"], 4))
    else:
        expected = sorted([*expected, *deleted])

    if merge_type == "unmerged":
        found = read_unmerged_logs(builder.context(config()), builder.build()).select(columns)
    else:
        found = read_slice(builder.context(config()), builder.build(), columns=columns, merge_type=merge_type)
    assert found.column_names == columns
    whole = {"id": lambda text: text[0], "a": lambda text: int(text[1]), "b": str}
    assert sorted(tuple(each.values()) for each in found.to_pylist()) == sorted(
        tuple(whole[name](text) for name in columns) for text in expected
    )


def test_a_row_before_an_update_is_gone_unless_the_row_after_it_follows(builder: SliceBuilder) -> None:
    logged = DATA.append(pa.field("_hoodie_operation", pa.string()))
    builder.add_base([row("a", 1, 1), row("b", 1, 1), row("d", 5, 1), row("e", None, 1)])
    images = [("a", 1, 1, "-U"), ("a", 2, 2, "U"), ("b", 1, 1, "-U"), ("c", 1, 1, "I"), ("c", 1, 1, "-U")]
    images += [("d", 5, 1, "-U"), ("d", 5, 2, "U"), ("e", None, 1, "-U"), ("e", None, 2, "U")]
    rows = [{**row(key, ts, a), "_hoodie_operation": operation} for key, ts, a, operation in images]
    builder.add_log(upserts(rows, 2, logged))

    found = data_rows(read_slice(builder.context(config()), builder.build()))

    assert [(each["id"], each["a"]) for each in found] == [("a", 2), ("d", 2), ("e", 2)]


def test_an_unknown_merge_type_is_refused(mixed: SliceBuilder) -> None:
    with pytest.raises(ConfigError, match="'newest'.*payload_combine, skip_merge"):
        read_slice(mixed.context(config()), mixed.build(), merge_type="newest")


def test_columns_come_in_the_order_asked_for_without_keys_or_ordering_fields(mixed: SliceBuilder) -> None:
    rows = read_slice(mixed.context(config()), mixed.build(), columns=["b", "a"])

    assert rows.column_names == ["b", "a"]
    assert sorted(rows.column("a").to_pylist()) == [1, 2, 2]
    with pytest.raises(SchemaError, match="'nope'.*the table has"):
        read_slice(mixed.context(config()), mixed.build(), columns=["nope"])


def test_filters_look_at_merged_rows_and_at_columns_not_asked_for(mixed: SliceBuilder) -> None:
    rows = read_slice(mixed.context(config()), mixed.build(), columns=["id"], filters=pc.field("a") == 1)

    assert rows.to_pydict() == {"id": ["b"]}


def test_the_delta_names_base_rows_by_number(mixed: SliceBuilder) -> None:
    delta = resolve_delta(mixed.context(config()), mixed.build())

    assert delta.masked_positions.to_pylist() == [0, 2]
    assert [found["id"] for found in data_rows(delta.live)] == ["a", "d"]
    assert delta.live.schema.equals(mixed.context(config()).schema)


def test_a_slice_of_logs_only_and_a_slice_without_logs(builder: SliceBuilder) -> None:
    only_logs = builder.add_log(upserts([row("a")], 1)).build()
    context = builder.context(config())

    assert data_rows(read_slice(context, only_logs)) == [row("a")]
    assert resolve_delta(context, only_logs).masked_positions.to_pylist() == []
    builder.logs.clear()
    plain = builder.add_base([row("b")]).build()
    assert data_rows(read_slice(context, plain)) == [row("b")]
    assert (
        len(resolve_delta(context, plain).masked_positions),
        resolve_delta(context, plain).live.num_rows,
    ) == (0, 0)


def test_a_range_of_instants_holds_before_anything_is_merged(builder: SliceBuilder) -> None:
    builder.add_base([row("a", 9, 1), row("b", 9, 1)])
    builder.add_log(upserts([row("a", 5, 2)], 2)).add_log(upserts([row("b", 9, 3)], 3)).add_log(
        deletes(["a"], 4)
    )
    expected = {
        (instant(1), instant(2)): [("a", 2)],
        (instant(2), None): [("b", 3)],
        (None, instant(1)): [("a", 1), ("b", 1)],
    }

    for span, rows in {**expected, frozenset([instant(3)]): [("b", 3)]}.items():
        context = builder.context(config(), instant_range=span)
        assert [
            (found["id"], found["a"]) for found in data_rows(read_slice(context, builder.build()))
        ] == rows


def test_a_context_can_be_sent_to_an_executor(mixed: SliceBuilder) -> None:
    context = pickle.loads(pickle.dumps(mixed.context(config())))  # noqa: S301

    assert len(data_rows(read_slice(context, mixed.build()))) == 3


OLD = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("n", pa.int32()), ("gone", pa.string())])
NEW = pa.schema([("id", pa.string()), ("new", pa.string()), ("ts", pa.int64()), ("n", pa.string())])


def test_old_files_and_logs_are_read_in_the_new_schema(builder: SliceBuilder) -> None:
    builder.schema = NEW
    builder.add_base(
        [{"id": "a", "ts": 1, "n": 1, "gone": "x"}, {"id": "b", "ts": 1, "n": 2, "gone": "x"}], schema=OLD
    )
    builder.add_log(upserts([{"id": "a", "ts": 2, "n": 10, "gone": "x"}], 2, OLD))
    builder.add_log(upserts([{"id": "c", "ts": 3, "n": "text", "new": "y"}], 3, NEW, block_format="parquet"))

    rows = read_slice(builder.context(config()), builder.build())

    assert sorted(rows.select(NEW.names).to_pylist(), key=lambda found: found["id"]) == [
        {"id": "a", "new": None, "ts": 2, "n": "10"},
        {"id": "b", "new": None, "ts": 1, "n": "2"},
        {"id": "c", "new": "y", "ts": 3, "n": "text"},
    ]


def _history(*versions: tuple[int, list[tuple[int, str]]]) -> str:
    columns = [(each, number) for each, number in enumerate(META_FIELDS)]
    return json.dumps(
        {
            "schemas": [
                {
                    "version_id": version,
                    "type": "record",
                    "fields": [{"id": i, "name": n, "type": "string"} for i, n in [*columns, *names]],
                }
                for version, names in versions
            ]
        }
    )


def test_renamed_columns_are_followed_and_reused_names_are_not(builder: SliceBuilder) -> None:
    builder.schema = pa.schema(
        [("id", pa.string()), ("ts", pa.int64()), ("renamed", pa.int64()), ("b", pa.string())]
    )
    builder.add_base([row("a", 1, 7, "old b"), row("z", 1, 8, "old b")], schema=DATA)
    builder.add_log(upserts([row("a", 2, 9, "old b")], 2))
    history = parse_history(
        _history(
            (0, [(10, "id"), (11, "ts"), (12, "a"), (13, "b")]),
            (int(instant(3)), [(10, "id"), (11, "ts"), (12, "renamed"), (14, "b")]),
        ),
        "h",
    )

    rows = read_slice(builder.context(config(), schema_history=history), builder.build())

    assert sorted(rows.select(["id", "renamed", "b"]).to_pylist(), key=str) == [
        {"id": "a", "renamed": 9, "b": None},
        {"id": "z", "renamed": 8, "b": None},
    ]


@pytest.mark.parametrize(
    ("partition", "hive_style", "kind", "value"),
    [
        ("day=2024-03-01", "true", pa.string(), "2024-03-01"),
        ("7", "false", pa.int32(), 7),
        ("day=__HIVE_DEFAULT_PARTITION__", "true", pa.int32(), None),
        ("a/b", "false", pa.string(), "a/b"),
    ],
)
def test_partition_columns_left_out_of_the_files_come_from_the_folder(
    tmp_path: Path, partition: str, hive_style: str, kind: pa.DataType, value: object
) -> None:
    schema = pa.schema([*DATA, ("day", kind)])
    builder = SliceBuilder(tmp_path, schema, partition).add_base([row("a", 1)], schema=DATA)
    builder.add_log(upserts([row("b", 1)], 2))
    settings = config(
        hoodie__table__partition__fields="day",
        hoodie__datasource__write__drop__partition__columns="true",
        hoodie__datasource__write__hive_style_partitioning=hive_style,
    )

    rows = read_slice(builder.context(settings), builder.build(), columns=["id", "day"])

    assert sorted(rows.to_pylist(), key=str) == [{"id": "a", "day": value}, {"id": "b", "day": value}]


def test_without_meta_columns_the_key_columns_make_the_key(builder: SliceBuilder) -> None:
    settings = config(hoodie__populate__meta__fields="false", hoodie__table__recordkey__fields="id,a")
    builder.add_base([row("x", 1, 1, "old"), row("x", 1, 2, "old")])
    builder.add_log(upserts([row("x", 2, 2, "new")], 2) + deletes(["id:x,a:1"], 2))

    rows = read_slice(builder.context(settings), builder.build())

    assert data_rows(rows) == [row("x", 2, 2, "new")]


def test_partial_records_change_only_the_columns_they_name(builder: SliceBuilder) -> None:
    some = pa.schema([("ts", pa.int64()), ("b", pa.string())])
    builder.add_base([row("x", 1, 1, "old"), row("y", 1, 1, "old")])
    block = _partial_block([("x", 2, "new"), ("y", 0, "late")], some)

    assert data_rows(read_slice(builder.add_log(block).context(config()), builder.build())) == [
        row("x", 2, 1, "new"),
        row("y", 1, 1, "old"),
    ]
    builder.add_log(upserts([row("x", 3, 5, "full")], 4))
    assert data_rows(read_slice(builder.context(config(LATEST)), builder.build())) == [
        row("x", 3, 5, "full"),
        row("y", 0, 1, "late"),
    ]


def _partial_block(rows: list[tuple[str, int, str]], schema: pa.Schema) -> bytes:
    full = with_meta_columns(schema)
    table = pa.Table.from_pylist(
        [
            {"_hoodie_record_key": key, "_hoodie_commit_time": instant(3), "ts": ts, "b": b}
            for key, ts, b in rows
        ],
        schema=full,
    )
    (block,) = encode_data_blocks(
        table, arrow_to_avro(full, "t"), instant(3), extra_header=[(HeaderKey.IS_PARTIAL, "true")]
    )
    return block


def test_marked_rows_delete_with_their_ordering_value(builder: SliceBuilder) -> None:
    marked = pa.schema([*DATA, ("_hoodie_is_deleted", pa.bool_())])
    builder.add_base([row("a", 5), row("b", 5), row("c", 5)])
    rows = [
        {**row("a", 6), "_hoodie_is_deleted": True},
        {**row("b", 4), "_hoodie_is_deleted": True},
        {**row("c", 6), "_hoodie_is_deleted": None},
    ]
    builder.add_log(upserts(rows, 2, marked))

    assert [found["id"] for found in data_rows(read_slice(builder.context(config()), builder.build()))] == [
        "b",
        "c",
    ]


def test_base_files_that_cannot_be_read_are_one_clear_error_each(builder: SliceBuilder) -> None:
    slice_ = builder.add_base([row("a")]).build()
    context = builder.context(config())
    path = builder.folder / slice_.base_file.path
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CorruptTableError, match="cannot be read"):
        read_slice(context, slice_)
    path.unlink()
    with pytest.raises(TimelineError, match="was deleted.*Read the table again"):
        read_slice(context, slice_)
    other = FileSlice("", "f-0", instant(1), BaseFile("", "f-0", "0-0-0", instant(1), "lance"))
    with pytest.raises(UnsupportedTableError, match="'lance'; only parquet"):
        read_base_file(context, other.base_file)

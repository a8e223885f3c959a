"""Base files: their Parquet form, footers and atomic appearance."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
import pickle
import random
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine.errors import ConfigError, CorruptTableError, InvalidKeyError, PathEscapeError, SchemaError
from hudi_engine.format.config.enums import BloomFilterType, ParquetCodec
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.index.filters.bloom import BloomFilter
from hudi_engine.format.index.filters.footer import key_range, read_key_footer
from hudi_engine.format.schema.meta_fields import META_FIELDS
from hudi_engine.format.storage import open_storage
from hudi_engine.table.handles.base_file_options import BaseFileOptions
from hudi_engine.table.handles.base_file_writer import attach_meta_columns, write_base_file
from hypothesis import given
from hypothesis import strategies as st

NAME = "6d3d1d6e-2298-4080-a0c1-494877d6f40a-0_1-0-1_20240418173213674.parquet"
AVRO = {
    "type": "record",
    "name": "t_record",
    "fields": [{"name": "id", "type": ["null", "string"], "default": None}],
}
NESTED = pa.schema(
    [
        ("money", pa.decimal128(15, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("point", pa.struct([("x", pa.float64()), ("names", pa.list_(pa.struct([("n", pa.int32())])))])),
        ("labels", pa.map_(pa.string(), pa.decimal128(5, 1))),
        ("empty", pa.list_(pa.int64())),
    ]
)


def made_with(**changes):
    """Return the layout that the options ask for when nothing is said, with some of it changed."""
    return replace(BaseFileOptions.from_options(resolve_options({})), **changes)


@pytest.fixture
def storage(tmp_path):
    return open_storage(str(tmp_path))


def stamped(keys: list[str | None], data: pa.Table | None = None, **changes: object) -> pa.Table:
    rows = pa.table({"id": pa.array(keys, pa.string())}) if data is None else data
    stamp = {
        "commit_time": "20240418173213674",
        "seqno_prefix_task": 1,
        "keys": pa.array(keys, pa.string()),
        "partition": "dt=2024",
        "file_name": NAME,
    }
    return attach_meta_columns(rows, **{**stamp, **changes})


def write(storage, rows, path: str = f"dt=2024/{NAME}", **changes):
    options = changes.pop("options", made_with())
    return write_base_file(storage, path, rows, avro_schema_with_meta=AVRO, options=options, **changes)


def read(storage, path: str = f"dt=2024/{NAME}") -> pq.ParquetFile:
    return pq.ParquetFile(storage.open_input(path))


def test_new_rows_get_the_five_meta_columns():
    table = stamped(["a", "b"], start_row=7)
    assert table.column_names == [*META_FIELDS, "id"]
    assert table.slice(1).to_pylist() == [
        {
            "_hoodie_commit_time": "20240418173213674",
            "_hoodie_commit_seqno": "20240418173213674_1_8",
            "_hoodie_record_key": "b",
            "_hoodie_partition_path": "dt=2024",
            "_hoodie_file_name": NAME,
            "id": "b",
        }
    ]


def test_meta_columns_that_are_there_are_replaced():
    again = stamped(["a"], stamped(["old"]), commit_time="20250101000000000")
    assert again.column_names == [*META_FIELDS, "id"]
    assert again["_hoodie_commit_time"].to_pylist() == ["20250101000000000"]
    assert again["_hoodie_record_key"].to_pylist() == ["a"]


def test_the_footer_holds_what_hudi_looks_up(storage):
    info = write(storage, stamped(["b", "c", "a"]))
    footer = {key.decode(): value.decode() for key, value in read(storage).metadata.metadata.items()}
    bloom = BloomFilter.from_text(footer.pop("org.apache.hudi.bloomfilter"), "DYNAMIC_V0")
    assert bloom.might_contain_all(pa.array(["a", "b", "c"])).all()
    assert json.loads(footer.pop("parquet.avro.schema")) == AVRO
    assert footer == {
        "hoodie_bloom_filter_type_code": "DYNAMIC_V0",
        "hoodie_min_record_key": "a",
        "hoodie_max_record_key": "c",
        "writer.model.name": "avro",
    }
    assert (info.rows, info.min_key, info.max_key) == (3, "a", "c")
    assert info.size == storage.stat(info.path).size


def test_the_key_footer_reads_back(storage):
    write(storage, stamped(["k1", "k2"]))
    footer = read_key_footer(storage, f"dt=2024/{NAME}")
    assert (footer.min_key, footer.max_key, footer.rows) == ("k1", "k2", 2)
    assert footer.bloom.might_contain_all(pa.array(["k1", "k2", "k3"])).tolist() == [True, True, False]


def test_a_file_without_index_data_has_an_empty_key_footer(storage, tmp_path):
    pq.write_table(pa.table({"id": [1]}), tmp_path / "plain.parquet")
    footer = read_key_footer(storage, "plain.parquet")
    assert (footer.min_key, footer.max_key, footer.bloom, footer.rows) == (None, None, None, 1)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet at all", b"PAR1" + b"\xff" * 20 + b"PAR1"])
def test_what_is_no_parquet_file_is_named(storage, content):
    storage.create("bad.parquet", content)
    with pytest.raises(CorruptTableError, match=r"'bad\.parquet' cannot be read as Parquet"):
        read_key_footer(storage, "bad.parquet")


def test_a_damaged_filter_is_named_with_its_file(storage, tmp_path):
    table = pa.table({"id": [1]}).replace_schema_metadata({"org.apache.hudi.bloomfilter": "???"})
    pq.write_table(table, tmp_path / "bad.parquet")
    with pytest.raises(CorruptTableError, match=r"'bad\.parquet'.*not base64"):
        read_key_footer(storage, "bad.parquet")


def test_every_type_comes_back_in_the_form_hudi_writes(storage):
    point = {"x": 1.5, "names": [{"n": 1}, None, {"n": None}]}
    values = {
        "money": decimal.Decimal("-12.50"),
        "at": dt.datetime(2024, 2, 3, 4, 5, 6, 123456, tzinfo=dt.timezone.utc),
        "day": dt.date(2024, 2, 3),
        "raw": b"\0\xff",
        "tags": ["x", None],
        "point": point,
        "labels": [("a", decimal.Decimal("1.5")), ("b", None)],
        "empty": [],
    }
    data = pa.Table.from_pylist([values, dict.fromkeys(values)], schema=NESTED)
    write(storage, stamped(["a", "b"], data))
    found = read(storage)
    assert found.read().select(NESTED.names).to_pylist() == data.to_pylist()
    forms = {found.schema.column(i).path: found.schema.column(i) for i in range(len(found.schema))}
    assert str(forms["money"].logical_type) == "Decimal(precision=15, scale=2)"
    assert forms["money"].physical_type == "FIXED_LEN_BYTE_ARRAY"
    assert "isAdjustedToUTC=true, timeUnit=microseconds" in str(forms["at"].logical_type)
    assert {"tags.list.element", "point.names.list.element.n", "labels.key_value.value"} <= set(forms)
    optional = [field for field in found.schema_arrow if field.nullable]
    assert len(optional) == len(found.schema_arrow)
    assert b"ARROW:schema" not in found.metadata.metadata


def test_a_file_without_rows_is_legal(storage):
    info = write(storage, stamped([]))
    assert (info.rows, info.min_key, info.max_key) == (0, None, None)
    assert (read(storage).metadata.num_row_groups, read(storage).read().num_rows) == (0, 0)
    footer = read_key_footer(storage, info.path)
    assert footer.bloom.might_contain_all(pa.array(["a"])).tolist() == [False]


def test_batches_are_written_as_they_come(storage):
    keys = [f"k{number:03d}" for number in range(100)]
    batches = (batch for batch in stamped(keys).to_batches(max_chunksize=7))
    info = write(storage, batches, options=made_with(row_group_bytes=8_000))
    found = read(storage)
    assert found.read()["id"].to_pylist() == keys
    assert found.metadata.num_row_groups > 1
    assert (info.rows, info.min_key, info.max_key) == (100, "k000", "k099")
    assert read_key_footer(storage, info.path).bloom.might_contain_all(pa.array(keys)).all()


def test_row_groups_have_about_the_size_asked_for(storage):
    rows = stamped([f"k{number:05d}" for number in range(5000)])
    write(storage, rows, options=made_with(row_group_bytes=rows.nbytes // 4))
    metadata = read(storage).metadata
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [1250] * 4


def sent(rows: pa.Table) -> pa.RecordBatch:
    """Return rows as a worker of Spark gets them: all columns of a message are one block of memory."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return next(iter(pa.ipc.open_stream(sink.getvalue()).read_all().to_batches()))


def test_rows_that_are_written_are_not_kept(storage):
    group, most = 4 * 2**20, []
    before = pa.total_allocated_bytes()

    def batches():
        for number in range(64):
            keys = [f"{number}-{row}" for row in range(1000)]
            filler = pa.array([random.Random(number).randbytes(1000)] * 1000)
            yield sent(stamped(keys, pa.table({"id": pa.array(keys), "filler": filler})))
            most.append(pa.total_allocated_bytes() - before)

    write(storage, batches(), options=made_with(row_group_bytes=group))
    assert read(storage).metadata.num_rows == 64_000
    assert max(most[32:]) < 6 * group, "64 MiB went by"


def bounded(file: pq.ParquetFile) -> set[str]:
    """Paths of the columns whose smallest and largest value the first row group tells."""
    group = file.metadata.row_group(0)
    columns = (group.column(number) for number in range(group.num_columns))
    return {each.path_in_schema for each in columns if each.is_stats_set and each.statistics.has_min_max}


def test_no_bounds_are_told_of_numbers_of_which_one_is_nan(storage):
    # Spark takes NaN for the largest number, and Arrow leaves it out of the bounds.
    columns = {
        "plain": [1.0, 2.0, None],
        "some": [1.0, float("nan"), 3.0],
        "many": pa.array([[1.0], [float("nan")], []], pa.list_(pa.float64())),
        "number": [1, 2, 3],
    }
    write(storage, stamped(["a", "b", "c"], pa.table(columns)))
    found = bounded(read(storage))
    assert {"plain", "number"} <= found
    assert not {"some", "many.list.element"} & found


def test_no_bounds_are_told_of_numbers_while_rows_are_to_come(storage):
    parts = [
        stamped([f"{n}{k}" for k in range(2000)], pa.table({"d": [last] * 2000, "n": [n] * 2000}))
        for n, last in enumerate((1.0, 2.0, float("nan")))
    ]
    batches = [batch for part in parts for batch in part.to_batches()]
    write(storage, batches, options=made_with(row_group_bytes=100_000))
    file = read(storage)
    assert file.num_row_groups > 1
    assert "n" in bounded(file) and "d" not in bounded(file)


@pytest.mark.parametrize("codec", ParquetCodec)
def test_every_codec_is_written(storage, codec):
    write(storage, stamped(["a"]), options=made_with(codec=codec))
    found = read(storage)
    expected = {"uncompressed": "UNCOMPRESSED", "lz4": "LZ4"}.get(codec, codec.upper())
    assert found.metadata.row_group(0).column(0).compression == expected
    assert found.read()["id"].to_pylist() == ["a"]


def test_keys_are_plain_and_repeating_columns_have_a_dictionary(storage):
    count = 12_000
    data = pa.table({"unique": [f"u{number}" for number in range(count)], "few": ["x", "y"] * (count // 2)})
    write(storage, stamped([f"k{number}" for number in range(count)], data))
    group = read(storage).metadata.row_group(0)
    dictionaries = {
        group.column(i).path_in_schema
        for i in range(group.num_columns)
        if group.column(i).has_dictionary_page
    }
    assert dictionaries == {"_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_file_name", "few"}


def test_a_given_filter_is_written_as_it_is(storage):
    bloom = BloomFilter.for_keys(pa.array(["a", "b", "gone"]), entries=10)
    info = write(storage, stamped(["a", "b"]), reuse_bloom=bloom)
    assert read_key_footer(storage, info.path).bloom.to_text() == bloom.to_text()


@pytest.mark.parametrize(
    ("options", "bits"),
    [
        (made_with(), 56),
        (made_with(bloom_fpp=1e-9), 101),
        (made_with(bloom_entries=60000), 2587966),
        (made_with(bloom_type=BloomFilterType.SIMPLE, bloom_entries=10), 432),
    ],
)
def test_the_filter_has_the_size_and_kind_of_the_options(storage, options, bits):
    write(storage, stamped(["a", "b"]), options=options)
    bloom = read_key_footer(storage, f"dt=2024/{NAME}").bloom
    assert (bloom.bits, bloom.kind) == (bits, options.bloom_type)


def test_a_filter_can_be_left_out(storage):
    info = write(storage, stamped(["a"]), options=made_with(bloom_enabled=False))
    footer = read_key_footer(storage, info.path)
    assert (footer.bloom, footer.min_key) == (None, "a")


@pytest.mark.parametrize(
    ("also", "is_written"),
    [
        ({}, False),
        ({"hoodie.index.type": "SIMPLE"}, False),
        ({"hoodie.index.type": "BLOOM"}, True),
        ({"hoodie.index.type": "GLOBAL_BLOOM"}, True),
        ({"hoodie.metadata.index.bloom.filter.enable": "true"}, True),
    ],
)
def test_a_filter_that_is_switched_off_is_written_where_it_is_read(storage, also, is_written):
    given = resolve_options({"hoodie.parquet.bloom.filter.enabled": "false", **also})
    info = write(storage, stamped(["a"]), options=BaseFileOptions.from_options(given))
    footer = read_key_footer(storage, info.path)
    assert (footer.bloom is not None, footer.min_key) == (is_written, "a")


def test_rows_without_a_key_are_refused_and_leave_nothing(storage):
    with pytest.raises(InvalidKeyError, match=r"1 row\(s\) have no record key"):
        write(storage, stamped(["a", None]))
    assert [each.path for each in storage.list("", recursive=True) if not each.is_dir] == []


def test_an_error_before_publishing_leaves_nothing(storage):
    def refuse() -> None:
        raise RuntimeError("the instant is gone")

    with pytest.raises(RuntimeError, match="the instant is gone"):
        write(storage, stamped(["a"]), before_publish=refuse)
    assert [each.path for each in storage.list("", recursive=True) if not each.is_dir] == []


def test_the_guard_runs_before_the_file_has_its_name(storage):
    seen: list[bool] = []
    write(storage, stamped(["a"]), before_publish=lambda: seen.append(storage.exists(f"dt=2024/{NAME}")))
    assert seen == [False]
    assert storage.exists(f"dt=2024/{NAME}")


def test_a_file_is_never_replaced(storage):
    write(storage, stamped(["a"]))
    with pytest.raises(FileExistsError):
        write(storage, stamped(["b"]))
    assert read(storage).read()["id"].to_pylist() == ["a"]


def test_paths_outside_the_table_are_refused(storage):
    with pytest.raises(PathEscapeError):
        write(storage, stamped(["a"]), path=f"../{NAME}")


def test_rows_must_begin_with_the_meta_columns(storage):
    with pytest.raises(SchemaError, match="meta columns .* must come first"):
        write(storage, pa.table({"id": ["a"]}))


def test_no_batches_at_all_are_refused(storage):
    with pytest.raises(SchemaError, match="no batches at all"):
        write(storage, iter([]))


def test_batches_of_other_columns_are_refused(storage):
    batches = [*stamped(["a"]).to_batches(), *stamped(["b"], pa.table({"other": ["x"]})).to_batches()]
    with pytest.raises(SchemaError, match="differ in columns"):
        write(storage, iter(batches))


@given(
    st.lists(st.text(st.characters(min_codepoint=0x20, exclude_categories=["Cs"]), max_size=4), min_size=1)
)
def test_the_key_range_is_in_the_order_of_java_strings(keys):
    def java(text: str) -> list[int]:
        data = text.encode("utf-16-be")
        return [int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2)]

    low, high = key_range(pa.array(keys))
    assert (java(low), java(high)) == (min(map(java, keys)), max(map(java, keys)))


@pytest.mark.parametrize("keys", [["\U0001f600", "\uff41"], ["\uff41", "\U0001f600"]])
def test_utf16_order_differs_from_utf8_beyond_the_basic_plane(storage, keys):
    info = write(storage, stamped(keys))
    assert (info.min_key, info.max_key) == ("\U0001f600", "\uff41")


def test_the_key_range_grows_from_batch_to_batch(storage):
    keys = ["\uff41", "\U0001f600", "b", "z", "a"]
    info = write(
        storage, iter(stamped(keys).to_batches(max_chunksize=1)), options=made_with(row_group_bytes=1)
    )
    assert (info.min_key, info.max_key) == ("a", "\uff41")


def test_options_come_from_hudis_keys():
    given_options = resolve_options(
        {
            "hoodie.parquet.compression.codec": "gzip",
            "hoodie.parquet.block.size": "1000",
            "hoodie.index.bloom.num_entries": "500",
            "hoodie.index.bloom.fpp": "0.01",
            "hoodie.bloom.index.filter.type": "SIMPLE",
            "hoodie.bloom.index.filter.dynamic.max.entries": "700",
            "hoodie.parquet.dictionary.enabled": "false",
        }
    )
    found = BaseFileOptions.from_options(given_options)
    assert (found.codec, found.row_group_bytes, found.bloom_entries) == ("gzip", 1000, 500)
    assert found.bloom_type is BloomFilterType.SIMPLE
    assert (found.bloom_fpp, found.bloom_max_entries, found.dictionary) == (0.01, 700, False)
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"row_group_bytes": 0}, "must be positive"),
    ],
)
def test_options_without_sense_are_refused(changes, problem):
    with pytest.raises(ConfigError, match=problem):
        made_with(**changes)

"""Tables whose times are ``timestamp-millis``, as Flink and Avro schemas of other writers have them."""

from __future__ import annotations

import datetime as dt
import json
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.keygen.generator import build_key_generator
from hudi_engine.format.logformat.format import BlockType, HeaderKey
from hudi_engine.format.logformat.writer import encode_block, encode_data_blocks, encode_delete_blocks
from hudi_engine.format.merge.base_reader import opened_base_file
from hudi_engine.format.merge.slice_reader import read_slice
from hudi_engine.format.schema.avro import avro_to_arrow, with_meta_fields
from hudi_engine.format.schema.casting import cast_table
from hudi_engine.format.schema.meta_fields import with_meta_columns
from hudi_engine.format.storage import open_storage
from hudi_engine.table.handles.base_file_options import BaseFileOptions
from hudi_engine.table.handles.base_file_writer import write_base_file
from hudi_engine.table.snapshot.native import natively_readable
from slices import SliceBuilder, config, instant, with_meta

MILLIS = 1705311000000
AT = {"type": "long", "logicalType": "timestamp-millis"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-millis"}
NESTED = {"type": "record", "name": "s", "fields": [{"name": "at", "type": AT}]}
MICROS = pa.timestamp("us", "UTC")


def avro(**columns: Any) -> dict[str, Any]:
    fields = [{"name": name, "type": kind} for name, kind in columns.items()]
    return {"type": "record", "name": "flink", "fields": fields}


def zigzag(number: int) -> bytes:
    value, out = number << 1, bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def a_row_in_a_log(kind: Any, value: int) -> bytes:
    """A data block with the row ``k``, byte by byte."""
    schema = json.dumps(with_meta_fields(avro(id="string", ts=kind)))
    texts = [instant(1), f"{instant(1)}_0_0", "k", "", "f-0"]
    datum = (
        b"".join(bytes([2]) + zigzag(len(text)) + text.encode() for text in texts) + b"\x02k" + zigzag(value)
    )
    content = struct.pack(">iii", 3, 1, len(datum)) + datum
    header = [(HeaderKey.INSTANT_TIME, instant(1)), (HeaderKey.SCHEMA, schema)]
    return encode_block(BlockType.AVRO_DATA, header, content)


def a_delete_in_a_log(branch: int, value: int) -> bytes:
    """A delete block of the row ``k``, as Hudi writes it: the ordering value is the column's plain number."""
    datum = b"\x02" + b"\x02\x02k" + b"\x02\x00" + zigzag(branch) + zigzag(value) + b"\x00"
    header = [(HeaderKey.INSTANT_TIME, instant(2))]
    return encode_block(BlockType.DELETE, header, struct.pack(">ii", 3, len(datum)) + datum)


@pytest.mark.parametrize(
    ("kind", "branch", "value"),
    [
        (AT, 3, MILLIS),
        (LOCAL, 3, MILLIS),
        ({"type": "long", "logicalType": "timestamp-micros"}, 3, MILLIS * 1000),
        ({"type": "int", "logicalType": "date"}, 2, 19737),
    ],
    ids=["millis", "local-millis", "micros", "date"],
)
def test_a_newer_delete_takes_its_row_and_an_older_one_does_not(
    tmp_path: Path, kind: Any, branch: int, value: int
) -> None:
    for later, left in ((1, 0), (-1, 1)):
        schema = avro_to_arrow(avro(id="string", ts=kind))
        slice_ = SliceBuilder(tmp_path / str(left), schema=schema)
        slice_.add_log(a_row_in_a_log(kind, value)).add_log(a_delete_in_a_log(branch, value + later))

        assert read_slice(slice_.context(config()), slice_.build()).num_rows == left


def test_a_delete_is_written_with_the_columns_own_number() -> None:
    column = avro_to_arrow(avro(ts=AT)).field(0).type
    ordering = pa.array([MILLIS], pa.int64()).view(column)
    keys = pa.array(["k"])

    (block,) = encode_delete_blocks(keys, pa.array([""]), ordering, instant(2))

    assert zigzag(3) + zigzag(MILLIS) in block


def sample(schema: pa.Schema, micros: int) -> pa.Table:
    """One row as Spark gives it, in the table's types."""
    at = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(microseconds=micros)
    row = {"id": "k", "ts": at, "s": {"at": at}, "l": [at], "m": {"x": at}}
    spark = pa.schema(
        [("id", pa.string()), ("ts", MICROS), ("s", pa.struct([("at", MICROS)])), ("l", pa.list_(MICROS)),
         ("m", pa.map_(pa.string(), MICROS))]
    )  # fmt: skip
    return cast_table(pa.Table.from_pylist([row], schema=spark), schema)


EVERYWHERE = avro(
    id="string", ts=AT, s=NESTED, l={"type": "array", "items": AT}, m={"type": "map", "values": AT}
)


def stored_units(file: pq.ParquetFile) -> dict[str, str]:
    leaves = [file.schema.column(number) for number in range(len(file.schema))]
    return {
        each.path: json.loads(each.logical_type.to_json())["timeUnit"]
        for each in leaves
        if "imestamp" in str(each.logical_type)
    }


LEAVES = {"ts", "s.at", "l.list.element", "m.key_value.value"}


def test_base_files_have_milliseconds_wherever_their_schema_says_so(tmp_path: Path) -> None:
    schema = avro_to_arrow(EVERYWHERE)
    rows = with_meta([], 1, schema)
    rows = pa.concat_tables([rows, with_meta(sample(schema, MILLIS * 1000).to_pylist(), 1, schema)])

    write_base_file(
        open_storage(str(tmp_path)), "f.parquet", rows,
        avro_schema_with_meta=with_meta_fields(EVERYWHERE), options=BaseFileOptions.from_options(resolve_options({})),
    )  # fmt: skip

    file = pq.ParquetFile(tmp_path / "f.parquet")
    assert stored_units(file) == dict.fromkeys(LEAVES, "milliseconds")
    assert file.read().column("ts").combine_chunks().view(pa.int64()).to_pylist() == [MILLIS]


def test_parquet_blocks_have_milliseconds_wherever_their_schema_says_so() -> None:
    schema = avro_to_arrow(EVERYWHERE)
    rows = with_meta(sample(schema, MILLIS * 1000).to_pylist(), 1, schema)

    (block,) = encode_data_blocks(rows, with_meta_fields(EVERYWHERE), instant(1), block_format="parquet")

    start, end = block.index(b"PAR1"), block.rindex(b"PAR1") + 4
    assert stored_units(pq.ParquetFile(pa.BufferReader(block[start:end]))) == dict.fromkeys(
        LEAVES, "milliseconds"
    )


def of_another_writer(content: bytes) -> bytes:
    """A Parquet file as parquet-mr would have written it."""
    own = re.findall(rb"parquet-cpp-arrow version [0-9.]+", content)[-1]
    return content.replace(own, b"parquet-mr version 1.13.1".ljust(len(own)))


def in_microseconds(rows: pa.Table) -> bytes:
    """A Parquet file whose times are told as microseconds, with the numbers of the rows."""
    kinds = [pa.string()] * 6 + [
        MICROS, pa.struct([("at", MICROS)]), pa.list_(pa.field("element", MICROS)), pa.map_(pa.string(), MICROS)
    ]  # fmt: skip
    columns = [column.combine_chunks().view(kind) for column, kind in zip(rows.columns, kinds, strict=True)]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns, names=rows.column_names), sink, store_schema=False)
    return bytes(sink.getvalue())


@pytest.mark.parametrize(("writer", "factor"), [(of_another_writer, 1), (bytes, 1000)], ids=["others", "own"])
def test_milliseconds_that_an_old_hudi_called_microseconds_are_read_as_what_they_are(
    tmp_path: Path, writer: Callable[[bytes], bytes], factor: int
) -> None:
    schema = avro_to_arrow(EVERYWHERE)
    rows = with_meta(sample(schema, MILLIS * factor).to_pylist(), 1, schema)
    wanted = sample(schema, MILLIS).to_pylist()
    content = writer(in_microseconds(rows))
    header = [
        (HeaderKey.INSTANT_TIME, instant(1)),
        (HeaderKey.SCHEMA, json.dumps(with_meta_fields(EVERYWHERE))),
    ]
    in_log = SliceBuilder(tmp_path / "log", schema=schema)
    in_log.add_log(encode_block(BlockType.PARQUET_DATA, header, content))
    in_base = SliceBuilder(tmp_path / "base", schema=schema).add_base([])
    assert in_base.base is not None
    (tmp_path / "base" / in_base.base.path).write_bytes(content)

    for each in (in_log, in_base):
        found = read_slice(each.context(config()), each.build())
        assert found.select(schema.names).to_pylist() == wanted
    with opened_base_file(in_base.context(config()), in_base.base) as file:
        assert next(iter(file.blocks(schema.names))).to_pylist() == wanted
        assert file.take(np.array([0]), schema.names).to_pylist() == wanted
    storage, columns = open_storage(str(tmp_path / "base")), with_meta_columns(schema)
    is_native = natively_readable(storage, config(), [in_base.base.path], columns, spark=(4, 1))
    assert is_native == (factor == 1000)


def test_a_plain_number_is_a_local_time_in_the_tables_unit(tmp_path: Path) -> None:
    for unit, micros in (("millis", MILLIS * 1000), ("micros", MILLIS)):
        kind = {"type": "long", "logicalType": f"local-timestamp-{unit}"}
        slice_ = SliceBuilder(tmp_path / unit, schema=avro_to_arrow(avro(id="string", at=kind)))
        slice_.add_base([{"id": "k", "at": MILLIS}], schema=avro_to_arrow(avro(id="string", at="long")))

        rows = read_slice(slice_.context(config()), slice_.build())

        assert rows.column("at").to_pylist() == [dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)]


@pytest.mark.parametrize(("micros", "millis"), [(1_999, 1), (-1, -1), (-1_000, -1), (-1_001, -2)])
def test_what_is_finer_than_a_millisecond_is_cut_off_as_hudi_does_before_1970_too(
    micros: int, millis: int
) -> None:
    times = sample(avro_to_arrow(EVERYWHERE), micros).column("ts").combine_chunks()

    assert times.view(pa.int64()).to_pylist() == [millis]


def test_keys_and_partitions_are_the_columns_own_number() -> None:
    rows = sample(avro_to_arrow(EVERYWHERE), MILLIS * 1000)
    simple = config(hoodie__table__recordkey__fields="ts", hoodie__table__partition__fields="ts")
    dated = config(
        hoodie__table__partition__fields="ts",
        hoodie__table__keygenerator__type="TIMESTAMP",
        hoodie__keygen__timebased__timestamp__type="EPOCHMILLISECONDS",
        hoodie__keygen__timebased__output__dateformat="yyyy/MM/dd",
    )

    assert build_key_generator(simple).record_keys(rows).to_pylist() == [str(MILLIS)]
    assert build_key_generator(simple).partition_paths(rows).to_pylist() == [str(MILLIS)]
    assert build_key_generator(dated).partition_paths(rows).to_pylist() == ["2024/01/15"]

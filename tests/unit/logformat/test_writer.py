"""Writing log blocks."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hudi_engine.errors import ConfigError, CorruptTableError
from hudi_engine.format.config.enums import ParquetCodec
from hudi_engine.format.logformat.blocks import data_parquet
from hudi_engine.format.logformat.blocks.delete import DeleteRecord, decode
from hudi_engine.format.logformat.format import BlockType, HeaderKey
from hudi_engine.format.logformat.reader import decode_data_block, read_blocks
from hudi_engine.format.logformat.writer import encode_data_blocks, encode_delete_blocks
from hudi_engine.format.schema.avro import arrow_to_avro, avro_to_arrow

INSTANT = "20260101000000000"
ROWS = pa.table({"id": [f"key {n}" for n in range(100)], "n": pa.array(range(100), pa.int64())})
AVRO = arrow_to_avro(ROWS.schema, "t")


@pytest.mark.parametrize("block_format", ["avro", "parquet"])
@pytest.mark.parametrize("limit", [10**9, 500])
def test_rows_come_back_in_order_with_instant_and_schema(block_format: str, limit: int) -> None:
    blocks = encode_data_blocks(ROWS, AVRO, INSTANT, block_format=block_format, max_block_bytes=limit)

    found = list(read_blocks(b"".join(blocks)))

    assert len(found) == len(blocks) and (len(blocks) == 1) == (limit == 10**9)
    assert pa.concat_tables([decode_data_block(block) for block in found]).equals(ROWS)
    assert {block.instant_time for block in found} == {INSTANT}
    assert avro_to_arrow(found[0].schema or "").equals(ROWS.schema)


def test_no_rows_give_no_block() -> None:
    assert encode_data_blocks(ROWS.slice(0, 0), AVRO, INSTANT) == []


def test_a_log_compaction_says_what_it_packed() -> None:
    (data,) = encode_data_blocks(
        ROWS, AVRO, INSTANT, extra_header=[(HeaderKey.COMPACTED_BLOCK_TIMES, "20250103,20250102")]
    )

    (block,) = read_blocks(data)
    assert block.compacted_block_times == ("20250103", "20250102")


def test_deletes_of_chunked_columns_with_a_struct_of_ordering_values() -> None:
    keys = pa.chunked_array([["a"], ["b"]])
    ordering = pa.StructArray.from_arrays([pa.array([1, 2]), pa.array(["x", "y"])], ["n", "s"])

    (block,) = read_blocks(b"".join(encode_delete_blocks(keys, keys, ordering, INSTANT, AVRO)))

    assert block.kind is BlockType.DELETE
    assert [record.ordering_value for record in decode(block.content)] == [(1, "x"), (2, "y")]


def test_deletes_without_ordering_values_always_win() -> None:
    (block,) = read_blocks(b"".join(encode_delete_blocks(pa.array(["a"]), pa.array([""]), None, INSTANT)))

    assert [record.ordering_value for record in decode(block.content)] == [None]
    assert HeaderKey.SCHEMA not in block.header


def test_many_deletes_are_cut_into_blocks_that_keep_their_order() -> None:
    keys = pa.array([f"key {n}" for n in range(100)])
    folders, ordering = (
        pa.array([f"day={n % 3}" for n in range(100)]),
        pa.array([n or None for n in range(100)]),
    )

    blocks = encode_delete_blocks(keys, folders, ordering, INSTANT, AVRO, max_block_bytes=500)

    found = list(read_blocks(b"".join(blocks)))
    assert {block.kind for block in found} == {BlockType.DELETE} and len(found) == len(blocks) > 3
    assert all(len(block.content) <= 600 and block.instant_time == INSTANT for block in found)
    assert [record for block in found for record in decode(block.content)] == [
        DeleteRecord(*record) for record in zip(keys.to_pylist(), folders.to_pylist(), ordering.to_pylist())
    ]
    assert encode_delete_blocks(keys[:0], folders[:0], None, INSTANT) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"block_format": "hfile"}, "'hfile'.*avro, parquet"),
        ({"max_block_bytes": 0}, "at least 1"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        encode_data_blocks(ROWS, AVRO, INSTANT, **options)


def test_a_damaged_parquet_block_is_one_clear_error() -> None:
    content = data_parquet.encode(ROWS, ParquetCodec.ZSTD)

    for damaged in (content[:-1], b"", content[:4] + b"\xff" * (len(content) - 8) + content[-4:]):
        with pytest.raises(CorruptTableError, match="Parquet log block"):
            data_parquet.decode(memoryview(damaged))

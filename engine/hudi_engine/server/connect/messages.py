"""Messages of Spark Connect: read, walked through, and made."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

import pyarrow as pa
import zstandard
from google.protobuf.message import DecodeError, Message
from pyspark.sql.connect import proto

from hudi_engine.server.limits import ServerError
from hudi_engine.spark.sql.session import Rows

MAX_BYTES = 128 * 1024 * 1024
"""Longest request; Spark's own limit."""
_IS_COMPRESSED = "compressed_operation" in proto.Plan.DESCRIPTOR.fields_by_name
_MAX_DEPTH = 1024
_STACK_BYTES = 256 * 1024 * 1024
_MALFORMED = "the request is no message of Spark Connect as PySpark {version} has them: {error}"
Read = TypeVar("Read", bound=Message)


class Reader:
    """Reads requests, however deep a chain of DataFrame calls nests its messages.

    Python reads 100 levels, which are fifty calls, or 65535, for which the stack of a thread is too small: so one thread with a
    large stack reads them all, and what is deeper than Spark's limit is refused.
    """

    def __init__(self) -> None:
        with suppress(ImportError, AttributeError):
            from google._upb import _message

            _message.SetAllowOversizeProtos(True)
        self._thread = ThreadPoolExecutor(1, "reader")
        before = threading.stack_size(_STACK_BYTES)
        try:
            self._thread.submit(int).result()
        finally:
            threading.stack_size(before)

    def read(self, kind: type[Read], data: bytes) -> Read:
        """Return the message of some bytes, with compressed plans as they were; ServerError for bytes that are none."""
        message = self._parsed(kind, data)
        for each in parts(proto.Plan, message):
            if _IS_COMPRESSED and each.HasField("compressed_operation"):
                self._unpack(each)
        return message

    def _parsed(self, kind: type[Read], data: bytes) -> Read:
        try:
            message: Read = self._thread.submit(kind.FromString, data).result()
        except DecodeError as error:
            raise ServerError(_malformed(error), "08P01") from error
        if any(depth > _MAX_DEPTH for _, depth in _walk(message)):
            raise ServerError(
                f"the plan is nested deeper than {_MAX_DEPTH} messages; write what it has by then to a table or a temporary view, "
                "and go on from there",
                "54001",
            )
        message.DiscardUnknownFields()
        return message

    def _unpack(self, plan: proto.Plan) -> None:
        packed = plan.compressed_operation
        if packed.compression_codec != proto.CompressionCodec.COMPRESSION_CODEC_ZSTD:
            raise ServerError(
                "the plan is compressed by another method than zstd, which is the only one", "0A000"
            )
        try:
            data = zstandard.ZstdDecompressor().stream_reader(packed.data).read(MAX_BYTES + 1)
        except zstandard.ZstdError as error:
            raise ServerError(_malformed(error), "08P01") from error
        if len(data) > MAX_BYTES:
            raise ServerError(f"the plan is longer than {MAX_BYTES} bytes", "54000")
        if packed.op_type == proto.Plan.CompressedOperation.OP_TYPE_COMMAND:
            plan.command.CopyFrom(self._parsed(proto.Command, data))
        else:
            plan.root.CopyFrom(self._parsed(proto.Relation, data))

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()


def _malformed(error: Exception) -> str:
    import pyspark

    return _MALFORMED.format(version=pyspark.__version__, error=error)


def messages(message: Message) -> Iterator[Any]:
    """Give a message and all that it is made of."""
    return (each for each, _ in _walk(message))


def _walk(message: Message) -> Iterator[tuple[Any, int]]:
    """Give each message with its depth, without a call of Python for each level."""
    left: list[tuple[Any, int]] = [(message, 1)]
    while left:
        each, depth = left.pop()
        yield each, depth
        for field, value in each.ListFields():
            if field.message_type is None:
                continue
            if field.message_type.GetOptions().map_entry:
                if field.message_type.fields_by_name["value"].message_type is not None:
                    left += ((below, depth + 1) for below in value.values())
            elif isinstance(value, Message):
                left.append((value, depth + 1))
            else:
                left += ((below, depth + 1) for below in value)


def parts(kind: type[Read], *given: Message) -> list[Read]:
    """Return all of a kind that messages are made of."""
    return [each for message in given for each in messages(message) if isinstance(each, kind)]


def arrow_bytes(rows: Rows) -> bytes:
    """Return rows in Arrow's form of a stream."""
    sink = pa.BufferOutputStream()
    # Spark takes no column that may be null for one that must not be
    types = zip(rows.table.columns, rows.schema.fields, strict=True)
    schema = pa.schema([pa.field(of.name, each.type, of.nullable) for each, of in types])
    with pa.ipc.new_stream(sink, schema) as written:
        # clients take an answer without a batch for none
        table = pa.Table.from_arrays(rows.table.columns, schema=schema)
        for batch in table.to_batches() or [pa.RecordBatch.from_pylist([], schema)]:
            written.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def local_relation(rows: Rows) -> proto.Relation:
    """Return rows as a relation that carries them."""
    relation = proto.Relation()
    relation.local_relation.schema = rows.schema.json()
    if rows.schema.fields:
        relation.local_relation.data = arrow_bytes(rows)
    return relation


def is_reattachable(request: proto.ExecutePlanRequest) -> bool:
    """Whether a client may come back for answers, which it releases."""
    return any(each.reattach_options.reattachable for each in request.request_options)


def given_sql(command: proto.SqlCommand) -> proto.Relation:
    """Return the relation of an SQL command; older clients send its parts."""
    if command.HasField("input"):
        return command.input
    relation = proto.Relation()
    relation.sql.query = command.sql
    relation.sql.pos_args.extend(command.pos_args)
    relation.sql.pos_arguments.extend(command.pos_arguments)
    for key in command.args:
        relation.sql.args[key].CopyFrom(command.args[key])
    for key in command.named_arguments:
        relation.sql.named_arguments[key].CopyFrom(command.named_arguments[key])
    return relation


def query_and_views(relation: proto.Relation) -> tuple[proto.SQL | None, dict[str, proto.Relation]]:
    """Return the text of an SQL command's relation, None where it has none, and the DataFrames that it names."""
    if relation.HasField("sql"):
        return relation.sql, {}
    if relation.HasField("with_relations") and relation.with_relations.root.HasField("sql"):
        named = [
            each.subquery_alias
            for each in relation.with_relations.references
            if each.HasField("subquery_alias")
        ]
        return relation.with_relations.root.sql, {each.alias: each.input for each in named}
    return None, {}

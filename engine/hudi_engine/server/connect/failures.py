"""Errors of the engine and of Spark as PySpark's client turns them into its own classes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import grpc
from google.protobuf.any_pb2 import Any as Packed
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from hudi_engine.server.limits import ServerError
from hudi_engine.spark.sql.failure import Failure, failure_of

# Bytes: a status goes in the headers of an answer, twice and encoded, and clients take 8 KiB of them.
_LONGEST = 1500
_ERROR_CLASS = re.compile(r"\A\s*\[([A-Z_0-9.]+)\]")
_GENERAL = "org.apache.spark.SparkException"
# By the start of the SQL state; the first that fits.
_CLASSES: Sequence[tuple[str, str]] = (
    ("42601", "org.apache.spark.sql.catalyst.parser.ParseException"),
    ("42", "org.apache.spark.sql.AnalysisException"),
    ("0A", "java.lang.UnsupportedOperationException"),
    ("22012", "java.lang.ArithmeticException"),
    ("22003", "java.lang.ArithmeticException"),
    ("22023", "java.lang.IllegalArgumentException"),
    ("22", "org.apache.spark.SparkRuntimeException"),
)


class CallFailedError(Exception):
    """A statement that has ended with a failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class NobodyError(Exception):
    """A call of nobody that is let in."""


def told(call: Callable[[Any, Any], bytes]) -> Callable[[Any, Any], bytes]:
    """Return a call that ends with a status that its client reads, whatever it raises."""

    def answered(request: Any, context: Any) -> bytes:
        try:
            return call(request, context)
        except Exception as error:
            raised = error
        return abort(context, raised)

    return answered


def told_in_stream(call: Callable[[Any, Any], Iterator[bytes]]) -> Callable[[Any, Any], Iterator[bytes]]:
    """Return a call of several answers that ends as one that is `told`."""

    def answered(request: Any, context: Any) -> Iterator[bytes]:
        try:
            yield from call(request, context)
            return
        except Exception as error:
            raised = error
        abort(context, raised)

    return answered


def abort(context: Any, error: Exception) -> NoReturn:
    """End a call with an error."""
    if isinstance(error, grpc.RpcError):
        pass_on(context, error)
    if isinstance(error, NobodyError):
        context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))
    if isinstance(error, CallFailedError):
        fail(context, error.failure)
    fail(
        context, Failure(str(error), error.sqlstate) if isinstance(error, ServerError) else failure_of(error)
    )


def fail(context: Any, failure: Failure) -> NoReturn:
    """End a call with a failure, which PySpark raises as the class that fits its SQL state."""
    kind = next((name for start, name in _CLASSES if failure.sqlstate.startswith(start)), _GENERAL)
    found = _ERROR_CLASS.match(failure.message)
    text = failure.message.encode("utf-8", "replace")
    message = failure.message if len(text) <= _LONGEST else f"{text[:_LONGEST].decode('utf-8', 'ignore')} ..."
    info = error_details_pb2.ErrorInfo(reason=kind, domain="org.apache.spark")
    info.metadata["classes"] = json.dumps([kind])
    info.metadata["sqlState"] = failure.sqlstate
    if found is not None:
        info.metadata["errorClass"] = found[1]
    packed = Packed()
    packed.Pack(info)
    status = status_pb2.Status(code=code_pb2.INTERNAL, message=message, details=[packed])
    context.abort_with_status(rpc_status.to_status(status))
    raise AssertionError("unreachable")


def pass_on(context: Any, error: grpc.RpcError) -> NoReturn:
    """End a call as the service behind this one ended it."""
    context.set_trailing_metadata(tuple(error.trailing_metadata() or ()))
    context.abort(error.code(), error.details() or "")
    raise AssertionError("unreachable")

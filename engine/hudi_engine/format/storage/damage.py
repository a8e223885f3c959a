"""Errors of pyarrow for damaged Parquet files as errors of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from hudi_engine.errors import CorruptTableError

DAMAGE = (
    pa.ArrowInvalid,
    pa.ArrowNotImplementedError,
    pa.ArrowTypeError,
    pa.ArrowCapacityError,
    pa.ArrowSerializationError,
    IndexError,
    UnicodeDecodeError,
    OSError,
)
"""What reading Parquet raises for bytes that were damaged; pages with a wrong checksum are an OSError."""


@contextmanager
def damaged_parquet(what: str) -> Iterator[None]:
    """Turn the errors of bytes that cannot be decoded into CorruptTableError; those of the storage go on as they are.

    pyarrow reports some damage as OSError too, without the number that errors of the operating system have.
    """
    try:
        yield
    except DAMAGE as error:
        if isinstance(error, OSError) and (error.errno is not None or isinstance(error, FileNotFoundError)):
            raise
        raise CorruptTableError(f"{what} cannot be read as Parquet: {error}") from error

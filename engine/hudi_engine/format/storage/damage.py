"""What pyarrow says of bytes that are no Parquet, in the words of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from hudi_engine.errors import CorruptTableError


@contextmanager
def damaged_parquet(what: str) -> Iterator[None]:
    """Turn the errors of bytes that cannot be decoded into CorruptTableError; those of the storage go on as they are.

    pyarrow reports some damage as OSError too, without the number that errors of the operating system have.

    Args:
        what: The file, for the message, such as ``"base file 'a.parquet'"``.
    """
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise CorruptTableError(f"{what} has no readable Parquet footer: {error}") from error
    except OSError as error:
        if error.errno is not None or isinstance(error, FileNotFoundError):
            raise
        raise CorruptTableError(f"{what} has no readable Parquet footer: {error}") from error

"""A few of the record keys that a file slice holds, which tell how its writer made and placed them."""

from __future__ import annotations

from hudi_engine.filegroup.file_slice import FileSlice
from hudi_engine.index.filters.footer import read_key_footer
from hudi_engine.logformat.format import BlockType
from hudi_engine.merge.base_reader import select_schema
from hudi_engine.merge.log_records import block_rows
from hudi_engine.merge.log_scanner import scan_slice
from hudi_engine.merge.read_context import ReadContext
from hudi_engine.schema.meta_fields import RECORD_KEY


def some_stored_keys(read: ReadContext, file_slice: FileSlice) -> list[str]:
    """Return the smallest and the greatest key of a base file, or some of the first log block; empty when there is none.

    Args:
        read: How the table is read.
        file_slice: The slice.

    Raises:
        CorruptTableError: A file is damaged.
    """
    if file_slice.base_file is not None:
        footer = read_key_footer(read.storage, file_slice.base_file.path)
        return [key for key in dict.fromkeys((footer.min_key, footer.max_key)) if key is not None]
    for scanned in scan_slice(read, file_slice).blocks:
        if scanned.place.kind is not BlockType.DELETE:
            wanted = select_schema(read.schema, [RECORD_KEY])
            keys = block_rows(read, file_slice, scanned.load(read), wanted).column(RECORD_KEY).drop_null()
            if len(keys):
                return [keys[0].as_py(), keys[len(keys) - 1].as_py()]
    return []

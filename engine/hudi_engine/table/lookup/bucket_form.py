"""Which release of Apache Hudi numbered the buckets of a table, and whether stored keys are in the buckets of the options.

Releases of Hudi hash keys with ``,`` or ``:`` differently, and the number of buckets and the hashed fields are options of
every write. A key that is looked for in another bucket than its own is written a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.write_options import IndexOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.index.buckets import BucketForm, bucket_ids, bucket_of_file
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.table.lookup.kinds import IndexKind
from hudi_engine.table.lookup.stored_keys import some_stored_keys

_MAX_SLICES = 8


def with_bucket_form(
    index: IndexKind, read: ReadContext, options: Options, slices: Sequence[FileSlice]
) -> IndexKind:
    """Return the index with the form of hashing of the release that made the table.

    Args:
        slices: Latest slices of the partitions that are written to; keys of some are compared with the options.

    Raises:
        ConfigError: A stored key is in another bucket than the options give, or an index field is no key field.
    """
    # Apache Hudi keeps its index options in no property.
    if index.buckets is None or IndexOptions.BUCKETS.key in read.config.properties:
        return index
    form = BucketForm.RELEASE_1 if read.config.is_of_release_1 else BucketForm.RELEASE_0
    found = _stored(read, slices, index.buckets)
    keys = pa.table({RECORD_KEY: pa.array([key for key, _ in found], pa.string())})
    numbers = bucket_ids(keys, read.config, index.buckets, options, form).to_pylist()
    for (key, bucket), number in zip(found, numbers, strict=True):
        if bucket != number:
            hashed = options[IndexOptions.HASH_FIELD] or ",".join(read.config.record_key_fields)
            raise ConfigError(
                f"table {read.config.name!r} is no table of {index.buckets} buckets by {hashed} as {form.value} numbers them: its "
                f"key {key!r} is in bucket {bucket} and not in {number}, so rows would be there twice. Give "
                f"{IndexOptions.BUCKETS.key} and {IndexOptions.HASH_FIELD.key} of the writer that made it, or rebuild the table "
                "(in dbt with --full-refresh)"
            )
    return replace(index, form=form)


def _stored(read: ReadContext, slices: Iterable[FileSlice], count: int) -> list[tuple[str, int]]:
    """Return stored keys with the bucket they are in; a file group of no bucket is refused by the write itself."""
    numbered = [(each, bucket_of_file(each.file_id, count)) for each in slices]
    chosen = [(each, bucket) for each, bucket in numbered if bucket >= 0][:_MAX_SLICES]
    return [(key, bucket) for each, bucket in chosen for key in some_stored_keys(read, each)]

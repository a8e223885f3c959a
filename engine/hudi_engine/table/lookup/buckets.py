"""Which release of Apache Hudi numbered the buckets of a table, and whether stored keys are in the buckets of the options.

Releases of Hudi hash keys with ``,`` or ``:`` differently, and the number of buckets and the hashed fields are options of
every write. A key that is looked for in another bucket than its own is written a second time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from hudi_engine.errors import ConfigError, UnsupportedTableError
from hudi_engine.format.config.declared.write_options import IndexOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.index.buckets import BucketForm, bucket_ids, bucket_of_file
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.lookup.kinds import IndexKind
from hudi_engine.table.lookup.stored_keys import some_stored_keys

_BUCKET_NAME = re.compile(r"(\d{8})-")
_OTHER_ENGINES = ".hoodie/.bucket_index"
_MAX_BUCKETS, _MAX_BUCKETS_OF_ONE = 100_000, 10_000


def refuse_unsaid_buckets(config: TableConfig, options: Options, file_ids: Iterable[str]) -> None:
    """Refuse to use another index where the file groups are named as buckets; raises ConfigError with the options to give."""
    if config.is_of_this_engine or options[IndexOptions.TYPE] is not None:
        return
    names = sorted(set(file_ids))
    if _are_buckets(names):
        raise ConfigError(
            f"file groups of table {config.name!r} are named as buckets are ({names[0]!r}), and {IndexOptions.TYPE.key} is not "
            f"set: a row in another file group than its bucket's would be there twice for Apache Hudi. Give "
            f"{IndexOptions.TYPE.key}=BUCKET and {IndexOptions.BUCKETS.key} of the writer that made it (in dbt index: {{type: "
            "bucket, buckets: 8}); if it has no bucket index, give the index it has, such as SIMPLE"
        )


def refuse_other_bucket_engines(storage: Storage, config: TableConfig) -> None:
    """Refuse consistent hashing, or bucket numbers by partition; raises UnsupportedTableError."""
    if not config.is_of_this_engine and storage.exists(_OTHER_ENGINES):
        raise UnsupportedTableError(
            f"table {config.name!r} has {_OTHER_ENGINES}: its buckets are those of consistent hashing, or differ by partition. "
            "This engine reads such tables but does not write them; write to it with Apache Hudi, or rebuild it here with a "
            "fixed number of buckets"
        )


def _are_buckets(names: list[str]) -> bool:
    """Return whether names begin with small numbers, as random ones do once in many thousand times."""
    found = [_BUCKET_NAME.match(name) for name in names]
    numbers = [int(each.group(1)) for each in found if each is not None]
    return (
        bool(names)
        and len(numbers) == len(names)
        and max(numbers) < (_MAX_BUCKETS if names[1:] else _MAX_BUCKETS_OF_ONE)
    )


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

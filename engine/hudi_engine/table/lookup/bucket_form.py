"""How the buckets of a table were numbered: told by keys that are in them, since no property of Apache Hudi says it.

Releases of Hudi hash keys with ``,`` or ``:`` in other ways, and the number of buckets and the hashed fields are options of
every write. A key that is looked for in another bucket than its own is written a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.write_options import IndexOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.filegroup.file_slice import FileSlice
from hudi_engine.format.index.buckets import bucket_ids, bucket_of_file, has_one_form
from hudi_engine.format.keygen.hashed_parts import BucketForm
from hudi_engine.format.merge.read_context import ReadContext
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.table.lookup.kinds import IndexKind
from hudi_engine.table.lookup.stored_keys import some_stored_keys

_SLICES_LOOKED_AT = 8


def with_bucket_form(
    index: IndexKind,
    read: ReadContext,
    options: Options,
    keys: pa.ChunkedArray | None,
    slices: Sequence[FileSlice],
    elsewhere: Callable[[], Iterable[FileSlice]],
) -> IndexKind:
    """Return the index with the form that stored keys have; nothing is read where that can make no difference.

    Args:
        keys: Record keys of the batch, None when they are not known here.
        slices: Latest slices of the partitions that are written to.

    Raises:
        ConfigError: Stored keys are in other buckets than the options say, or an index field is no key field.
        InvalidKeyError: A key does not have the form of the table's key generator.
    """
    if index.buckets is None:
        return index
    # Apache Hudi keeps its index options in no property.
    is_noted = IndexOptions.BUCKETS.key in read.config.properties
    differs = None if keys is None else not has_one_form(keys, read.config, options)
    if is_noted and differs is False:
        return index
    forms = _forms(read, is_noted)
    found = _stored(read, slices, index.buckets)
    fits = _fitting(read, options, index.buckets, forms, found)
    if len(fits) > 1 and keys is not None and _same_buckets(read, options, index.buckets, fits, keys):
        return replace(index, form=fits[0])
    if len(fits) > 1 and (differs or (differs is None and not is_noted)):
        found += _stored(read, elsewhere(), index.buckets)
        fits = _fitting(read, options, index.buckets, fits, found)
    if not fits:
        raise _no_form_fits(read, options, index.buckets, forms, found)
    return replace(index, form=fits[0])


def _same_buckets(
    read: ReadContext, options: Options, count: int, forms: Sequence[BucketForm], keys: pa.ChunkedArray
) -> bool:
    """Tell whether forms give the keys of a batch the same buckets, so that it does not matter which one it is."""
    table = pa.table({RECORD_KEY: keys})
    first, *others = (bucket_ids(table, read.config, count, options, form) for form in forms)
    return all(each.equals(first) for each in others)


def _forms(read: ReadContext, is_noted: bool) -> list[BucketForm]:
    """Return the forms that may be a table's, the likeliest first."""
    if is_noted:
        return [BucketForm.RELEASE_1, BucketForm.EARLIER, BucketForm.RELEASE_0]
    if read.config.is_of_release_1:
        return [BucketForm.RELEASE_1, BucketForm.RELEASE_0, BucketForm.EARLIER]
    return [BucketForm.RELEASE_0, BucketForm.RELEASE_1, BucketForm.EARLIER]


def _stored(read: ReadContext, slices: Iterable[FileSlice], count: int) -> list[tuple[str, int]]:
    """Return stored keys with the bucket they are in; a file group of no bucket is for the write itself to refuse."""
    found: list[tuple[str, int]] = []
    looked_at = 0
    for each in slices:
        bucket = bucket_of_file(each.file_id, count)
        if bucket >= 0 and looked_at < _SLICES_LOOKED_AT:
            looked_at += 1
            found += [(key, bucket) for key in some_stored_keys(read, each)]
    return found


def _numbers(
    read: ReadContext, options: Options, count: int, form: BucketForm, found: Sequence[tuple[str, int]]
) -> list[int]:
    keys = pa.table({RECORD_KEY: pa.array([key for key, _ in found], pa.string())})
    numbers: list[int] = bucket_ids(keys, read.config, count, options, form).to_pylist()
    return numbers


def _fitting(
    read: ReadContext,
    options: Options,
    count: int,
    forms: Sequence[BucketForm],
    found: Sequence[tuple[str, int]],
) -> list[BucketForm]:
    buckets = [bucket for _, bucket in found]
    return [form for form in forms if _numbers(read, options, count, form, found) == buckets]


def _no_form_fits(
    read: ReadContext,
    options: Options,
    count: int,
    forms: Sequence[BucketForm],
    found: Sequence[tuple[str, int]],
) -> ConfigError:
    for key, bucket in found:
        if not _fitting(read, options, count, forms, [(key, bucket)]):
            where = f"its key {key!r} is in bucket {bucket}, where nobody puts it"
            break
    else:
        where = "its keys are in the buckets of several releases of Apache Hudi, which hash keys with ',' or ':' in other ways"
    hashed = options[IndexOptions.HASH_FIELD] or ",".join(read.config.record_key_fields)
    return ConfigError(
        f"table {read.config.name!r} is no table of {count} buckets by {hashed}: {where}, so rows would be there twice. Give "
        f"{IndexOptions.BUCKETS.key} and {IndexOptions.HASH_FIELD.key} of the writer that made it, or rebuild the table (in "
        "dbt with --full-refresh)"
    )

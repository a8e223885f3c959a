"""Bucket numbers of the bucket index.

Serves every table version (Hudi table spec, bucket index file ids): the bucket of a row is Java's
``List.hashCode`` of its key values, made non-negative, modulo the number of buckets.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import ConfigError, InvalidKeyError
from hudi_engine.format.config.declared.write_options import IndexOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.keygen.text import EMPTY_PLACEHOLDER, NULL_PLACEHOLDER
from hudi_engine.format.schema.any_case import spellings
from hudi_engine.format.schema.meta_fields import RECORD_KEY
from hudi_engine.format.schema.nested import one_array

Parts = list[str | None]


# Source: BucketIdentifier and KeyGenUtils.extractRecordKeysByFields of Hudi 0.15.0 and 1.2.0.
class BucketForm(str, Enum):
    """Whose way of hashing a record key the buckets of a table are of."""

    RELEASE_1 = "Apache Hudi 1"
    RELEASE_0 = "Apache Hudi 0"


def hashed_parts(key: str, fields: Collection[str], form: BucketForm) -> Parts:
    """Return the values of a key that are hashed, in the order of the key."""
    return _of_release_0(key, fields) if form is BucketForm.RELEASE_0 else _of_release_1(key, fields)


def _of_release_0(key: str, fields: Collection[str]) -> Parts:
    """Divide at every comma; a part whose name is no field counts for nothing, so nothing may be left of a time of day."""
    if ":" not in key:
        return [key]
    pieces = key.split(",")
    while pieces and not pieces[-1]:
        # As Java's split does.
        pieces.pop()
    found: Parts = []
    for piece in pieces:
        name, colon, value = piece.partition(":")
        if not colon:
            found.append(name)
        elif name in fields:
            found.append(_value(value))
    return found


def _of_release_1(key: str, fields: Collection[str]) -> Parts:
    """Return a key without both marks as one value; otherwise a value ends at the last comma before the next name."""
    if "," not in key or ":" not in key:
        return [key]
    found: Parts = []
    start = 0
    while 0 <= start < len(key):
        colon = key.find(":", start)
        if colon < 0:
            break
        end = _end_of_value(key, colon)
        if key[start:colon] in fields:
            found.append(_value(key[colon + 1 :] if end < 0 else key[colon + 1 : end]))
        start = end + 1 if end >= 0 else -1
    return found or [key]


def _end_of_value(key: str, colon: int) -> int:
    following = key.find(":", colon + 1)
    while following > 0:
        comma = key.rfind(",", colon + 1, following)
        if comma >= 0:
            return comma
        following = key.find(":", following + 1)
    return -1


def _value(text: str) -> str | None:
    if text == NULL_PLACEHOLDER:
        return None
    return "" if text == EMPTY_PLACEHOLDER else text


_PRIME = np.uint32(31)
_MAX_BUCKETS = 99_999_999
_KEYS_PER_BLOCK = 1 << 14


def java_hash(text: str) -> int:
    """Hash of one string as Java's ``String.hashCode`` gives it, a signed 32-bit number."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[position : position + 2], "big")) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def java_hashes(texts: pa.Array) -> npt.NDArray[np.uint32]:
    """Hash a column of strings as `java_hash` does, as unsigned numbers; null hashes to 0."""
    hashes = np.zeros(len(texts), dtype=np.uint32)
    ascii_rows = pc.fill_null(pc.string_is_ascii(texts), True)
    plain = ascii_rows.to_numpy(zero_copy_only=False)
    if plain.all():
        return _ascii_hashes(texts)
    hashes[plain] = _ascii_hashes(texts.filter(ascii_rows))
    others = texts.filter(pc.invert(ascii_rows)).to_pylist()
    hashes[~plain] = [java_hash(text) & 0xFFFFFFFF for text in others]
    return hashes


def bucket_of_file(file_id: str, buckets: int) -> int:
    """Return the bucket whose number is in a file id, -1 when it is of no bucket of ``buckets``."""
    head = file_id[:8]
    bucket = int(head) if head.isascii() and head.isdigit() else -1
    return bucket if bucket < buckets else -1


def bucket_ids(
    batch: pa.Table,
    config: TableConfig,
    buckets: int,
    options: Options,
    form: BucketForm = BucketForm.RELEASE_1,
) -> pa.Int32Array:
    """Give every row of a batch its bucket."""
    if not 1 <= buckets <= _MAX_BUCKETS:
        raise ConfigError(f"number of buckets is {buckets}; it must be between 1 and {_MAX_BUCKETS}")
    keys = pc.cast(one_array(batch.column(RECORD_KEY)), pa.string())
    fields, hashed = config.record_key_fields, _index_fields(config, options)
    odd = _odd_keys(keys, fields, form)
    if not odd.any():
        hashes = _hash_of(_plain_values(keys, fields, hashed), len(keys))
    else:
        hashes = np.ones(len(keys), dtype=np.uint32)
        rest = keys.filter(pa.array(~odd))
        hashes[~odd] = _hash_of(_plain_values(rest, fields, hashed), len(rest))
        hashes[odd] = _odd_hashes(keys.filter(pa.array(odd)), fields, hashed, form)
    return pa.array(((hashes & np.uint32(0x7FFFFFFF)) % np.uint32(buckets)).astype(np.int32))


def _index_fields(config: TableConfig, options: Options) -> tuple[str, ...]:
    """Return the fields that are hashed, as the option names them; raises ConfigError."""
    key_fields = config.record_key_fields
    named = options[IndexOptions.HASH_FIELD] or ""
    spelled = spellings(key_fields)
    fields = tuple(spelled.get(field.strip(), field.strip()) for field in named.split(",") if field.strip())
    unknown = [field for field in fields if field not in key_fields]
    if unknown:
        raise ConfigError(
            f"hoodie.bucket.index.hash.field names {', '.join(unknown)}, which no record key is made of; "
            f"choose among {', '.join(key_fields) or 'none: the keys of this table are generated'}"
        )
    return fields or tuple(key_fields)


def _odd_keys(
    keys: pa.Array | pa.ChunkedArray, fields: Sequence[str], form: BucketForm
) -> npt.NDArray[np.bool_]:
    """Return which keys have to be taken apart one by one."""
    if len(fields) > 1:
        names = ",".join(f"{re.escape(field)}:[^,:]*" for field in fields)
        found = pc.invert(pc.match_substring_regex(keys, f"(?s)^{names}$"))
    elif form is BucketForm.RELEASE_0:
        found = pc.match_substring(keys, ":")
    else:
        found = pc.and_(pc.match_substring(keys, ":"), pc.match_substring(keys, ","))
    odd: npt.NDArray[np.bool_] = found.to_numpy(zero_copy_only=False).astype(bool)
    return odd


def _plain_values(keys: pa.StringArray, fields: Sequence[str], hashed: Sequence[str]) -> list[pa.StringArray]:
    """Return the values that are hashed of keys that come apart in one way."""
    if len(fields) < 2:
        return [keys]
    split = split_complex_keys(keys, fields)
    return [split[each] for each in fields if each in hashed]


def _odd_hashes(
    keys: pa.StringArray, fields: Sequence[str], hashed: Sequence[str], form: BucketForm
) -> npt.NDArray[np.uint32]:
    if len(fields) > 1:
        # Refuses keys that do not name the fields.
        split_complex_keys(keys, fields)
    found = []
    for key in keys.to_pylist():
        total = 1
        for part in hashed_parts(key, hashed, form):
            total = (31 * total + (0 if part is None else java_hash(part))) & 0xFFFFFFFF
        found.append(total)
    return np.array(found, dtype=np.uint32)


def _hash_of(values: Sequence[pa.StringArray], count: int) -> npt.NDArray[np.uint32]:
    """Hash columns of values as Java's ``List.hashCode`` does a list of them."""
    total: npt.NDArray[Any] = np.ones(count, dtype=np.uint32)
    for value in values:
        total = total * _PRIME + java_hashes(value)
    return total


def split_complex_keys(keys: pa.StringArray, key_fields: Sequence[str]) -> dict[str, pa.StringArray]:
    """Take keys of the form ``a:1,b:2`` apart.

    Returns:
        The text of each field; null for ``__null__``, empty for ``__empty__``. A value that itself holds
        ``,<next field>:`` ends there.
    """
    pattern = ",".join(f"{re.escape(field)}:(?P<f{i}>.*?)" for i, field in enumerate(key_fields))
    parts = pc.extract_regex(keys, pattern=f"(?s)^{pattern}$")
    if parts.null_count:
        sample = keys.filter(pc.is_null(parts))[0].as_py()
        expected = ",".join(f"{field}:<value>" for field in key_fields)
        raise InvalidKeyError(
            f"record key {sample!r} does not have the form {expected!r}; "
            "check the table's record key fields and key generator"
        )
    values = {}
    for i, field in enumerate(key_fields):
        text = pc.struct_field(parts, f"f{i}")
        text = pc.if_else(pc.equal(text, NULL_PLACEHOLDER), pa.scalar(None, pa.string()), text)
        values[field] = pc.if_else(pc.equal(text, EMPTY_PLACEHOLDER), "", text)
    return values


def _ascii_hashes(texts: pa.Array) -> npt.NDArray[np.uint32]:
    binary = pc.cast(pc.fill_null(texts, ""), pa.large_binary())
    if len(binary) == 0:
        return np.zeros(0, dtype=np.uint32)
    _, offset_buffer, data_buffer = binary.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)[binary.offset : binary.offset + len(binary) + 1]
    data = np.frombuffer(data_buffer if data_buffer is not None else b"", dtype=np.uint8)
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    hashes = np.zeros(len(lengths), dtype=np.uint32)
    for start in range(0, len(order), _KEYS_PER_BLOCK):
        rows = order[start : start + _KEYS_PER_BLOCK]
        hashes[rows] = _block_hashes(data, offsets[rows], lengths[rows])
    return hashes


def _block_hashes(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint32]:
    """Hash a block sorted by falling length; each step takes one more byte of all that are long enough."""
    hashes = np.zeros(len(lengths), dtype=np.uint32)
    falling = -lengths
    for position in range(int(lengths[0])):
        reach = int(np.searchsorted(falling, -position, side="left"))
        part = hashes[:reach]
        np.multiply(part, _PRIME, out=part)
        np.add(part, data[starts[:reach] + position], out=part, casting="unsafe")
    return hashes

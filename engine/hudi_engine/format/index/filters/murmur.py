"""MurmurHash2 over whole columns of keys, as Hudi's Bloom filters use it.

Serves every table version. Hudi hashes a key several times in a row and seeds each round with the hash of the
round before, and it reads the last one to three bytes of a key as *signed* bytes (Hudi table spec, base
files, Bloom filter). Keys are hashed a block at a time: the 32-bit words of a block are laid out word by
word, longest key first, so that one numpy operation advances every key that still has a word left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

UInt32s = npt.NDArray[np.uint32]

_MULTIPLIER = np.uint32(0x5BD1E995)
_WORDS_PER_BLOCK = 1 << 17
_KEYS_PER_BLOCK = 1 << 14


@dataclass(frozen=True, eq=False)
class KeyBlock:
    """Up to a few thousand keys, ready to be hashed again and again with other seeds.

    Args:
        rows: Row number of each key in the column the block was cut from.
        words: Their full words, the first of every key, the second of every key that has one, and so on.
        tail_factor: What the hash is multiplied by after the tail; None when no key has one.
    """

    rows: npt.NDArray[np.int64]
    words: list[UInt32s]
    lengths: UInt32s
    tail: UInt32s
    tail_factor: UInt32s | None

    def __len__(self) -> int:
        return len(self.rows)

    def murmur2(self, seeds: UInt32s) -> UInt32s:
        """Hash every key with its own 32-bit seed; the result may serve as the seeds of the next round."""
        hashes = np.bitwise_xor(seeds, self.lengths)
        for word in self.words:
            part = hashes[: len(word)]
            np.multiply(part, _MULTIPLIER, out=part)
            np.bitwise_xor(part, word, out=part)
        if self.tail_factor is not None:
            np.bitwise_xor(hashes, self.tail, out=hashes)
            np.multiply(hashes, self.tail_factor, out=hashes)
        np.bitwise_xor(hashes, hashes >> np.uint32(13), out=hashes)
        np.multiply(hashes, _MULTIPLIER, out=hashes)
        np.bitwise_xor(hashes, hashes >> np.uint32(15), out=hashes)
        return hashes

    def select(self, mask: npt.NDArray[np.bool_]) -> KeyBlock:
        """Keep only the keys under the mask; their order stays."""
        return KeyBlock(
            self.rows[mask],
            [kept for word in self.words if len(kept := word[mask[: len(word)]])],
            self.lengths[mask],
            self.tail[mask],
            None if self.tail_factor is None else self.tail_factor[mask],
        )


def key_blocks(keys: pa.Array | pa.ChunkedArray) -> Iterator[KeyBlock]:
    """Cut a column of keys (string or binary, no nulls) into blocks for hashing."""
    chunks = keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]
    first_row = 0
    for chunk in chunks:
        if chunk.null_count:
            raise ValueError("record keys to be hashed must not be null")
        yield from _array_blocks(_as_large_binary(chunk), first_row)
        first_row += len(chunk)


def _as_large_binary(array: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return pc.cast(array, pa.large_binary())


def _array_blocks(array: pa.Array, first_row: int) -> Iterator[KeyBlock]:
    if len(array) == 0:
        return
    _, offset_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(data_buffer if data_buffer is not None else b"", dtype=np.uint8)
    lengths = np.diff(offsets)
    longest = int(lengths.max())
    order: npt.NDArray[np.int64]
    if longest == int(lengths.min()):
        order = np.arange(len(lengths))
    else:
        order = np.argsort(-lengths, kind="stable")
    position = 0
    while position < len(order):
        words = int(lengths[order[position]]) // 4 + 1
        rows = order[position : position + max(1, min(_KEYS_PER_BLOCK, _WORDS_PER_BLOCK // words))]
        yield _Texts(data, offsets[rows], lengths[rows]).block(rows + first_row)
        position += len(rows)


@dataclass(frozen=True, eq=False)
class _Texts:
    """Keys as bytes, longest first: where each begins in ``data``, and how long it is."""

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]

    def block(self, rows: npt.NDArray[np.int64]) -> KeyBlock:
        """Lay the keys out word by word."""
        full_words = self.lengths // 4
        words = []
        for number in range(int(full_words[0])):
            reach = int(np.searchsorted(-full_words, -number, side="left"))
            words.append(_gathered_words(self.data, self.starts[:reach] + 4 * number))
        left = self.lengths - 4 * full_words
        tail_factor = None
        if left.any():
            tail_factor = np.where(left > 0, _MULTIPLIER, np.uint32(1)).astype(np.uint32)
        return KeyBlock(rows, words, self.lengths.astype(np.uint32), self._tails(left), tail_factor)

    def _tails(self, left: npt.NDArray[np.int64]) -> UInt32s:
        tails = np.zeros(len(self.lengths), dtype=np.int32)
        signed = self.data.view(np.int8)
        ends = self.starts + self.lengths
        for back, shift in ((3, 16), (2, 8), (1, 0)):
            longer = np.flatnonzero(left >= back)
            tails[longer] ^= signed[ends[longer] - back].astype(np.int32) << shift
        return tails.view(np.uint32)


def _gathered_words(data: npt.NDArray[np.uint8], positions: npt.NDArray[np.int64]) -> UInt32s:
    unaligned: npt.NDArray[np.uint32] = np.ndarray(
        (max(len(data) - 3, 0),), dtype="<u4", buffer=data, strides=(1,)
    )
    word = unaligned[positions].astype(np.uint32, copy=False)
    np.multiply(word, _MULTIPLIER, out=word)
    np.bitwise_xor(word, word >> np.uint32(24), out=word)
    np.multiply(word, _MULTIPLIER, out=word)
    return word

"""Inputs made from good ones by small and large damage, the same for the same number every time."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence

NUMBERS = (
    0,
    1,
    2,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**63 - 1,
    2**63,
    2**64 - 1,
)
"""Where counts and lengths go wrong."""


def mutated(name: str, number: int, seeds: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """Return the input of a number.

    Args:
        name: Parser it is for.
        number: 0 and up; the first ones are the seeds as they are.
        seeds: Good inputs.
        words: Pieces that mean something to the parser.
    """
    if number < len(seeds):
        return seeds[number]
    chance = random.Random(f"{name}:{number}")
    if chance.random() < 0.03:
        return chance.randbytes(chance.randrange(200))
    data = bytearray(chance.choice(seeds))
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        chance.choice(_DAMAGES)(chance, data, seeds, words)
    return bytes(data)


def _place(chance: random.Random, data: bytearray) -> int:
    return chance.randrange(len(data) + 1)


def _flip(chance: random.Random, data: bytearray, *_: object) -> None:
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _set(chance: random.Random, data: bytearray, *_: object) -> None:
    if data:
        data[chance.randrange(len(data))] = chance.choice(
            (0, 1, 0x7F, 0x80, 0xFE, 0xFF, chance.randrange(256))
        )


def _cut(chance: random.Random, data: bytearray, *_: object) -> None:
    del data[_place(chance, data) :]


def _remove(chance: random.Random, data: bytearray, *_: object) -> None:
    start = _place(chance, data)
    del data[start : start + chance.choice((1, 2, 4, 8, 64))]


def _repeat(chance: random.Random, data: bytearray, *_: object) -> None:
    start = _place(chance, data)
    piece = bytes(data[start : start + chance.choice((1, 4, 16, 200))])
    data[start:start] = piece * chance.choice((1, 2, 50))


def _number(chance: random.Random, data: bytearray, *_: object) -> None:
    value, start = chance.choice(NUMBERS), _place(chance, data)
    spelled = chance.choice(
        (str(value).encode(), _varint(value), struct.pack(">Q", value), struct.pack("<Q", value))
    )
    piece = spelled[-4:] if chance.random() < 0.3 else spelled
    end = start + (len(piece) if chance.random() < 0.7 else 0)
    data[start:end] = piece


def _splice(chance: random.Random, data: bytearray, seeds: Sequence[bytes], _: object) -> None:
    other = chance.choice(seeds)
    start = chance.randrange(len(other) + 1)
    data[_place(chance, data) :] = other[start:]


def _word(chance: random.Random, data: bytearray, _: object, words: Sequence[bytes]) -> None:
    if words:
        start = _place(chance, data)
        data[start:start] = chance.choice(words) * chance.choice((1, 1, 1, 3, 100))


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


_DAMAGES = (_flip, _set, _cut, _remove, _repeat, _number, _splice, _word)

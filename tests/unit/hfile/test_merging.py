"""An HFile that is made of another one and of changed cells, against one that is made of all cells."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from hudi_engine.format.hfile import writer
from hudi_engine.format.hfile.file import HFile
from hudi_engine.format.hfile.merging import merged_content
from hudi_engine.format.hfile.writer import encode_content, encode_hfile

SCHEMA = '"bytes"'
Cells = dict[bytes, bytes]


def made(cells: Cells) -> bytes:
    keys = sorted(cells)
    values = pa.array([cells[key] for key in keys], pa.binary())
    return encode_hfile(pa.array(keys, pa.binary()), values, SCHEMA, is_base_file=True)


def merged(base: bytes, cells: Cells, removed: set[bytes]) -> bytes | None:
    content = merged_content(HFile.of_bytes(base), cells, removed)
    return None if content is None else encode_content(content, SCHEMA, is_base_file=True)


def some_cells(chance: random.Random, count: int, version: int) -> Cells:
    return {b"key-%06d" % chance.randrange(20_000): b"value-%d" % version * 3 for _ in range(count)}


@pytest.mark.parametrize("seed", range(30))
def test_it_has_the_cells_of_one_that_is_made_anew(seed: int) -> None:
    chance = random.Random(seed)
    base = some_cells(chance, chance.choice([1, 30, 8_000]), 1)
    for version in range(2, 5):
        cells = some_cells(chance, chance.choice([0, 1, 5, 500]), version)
        removed = {key for key in base if chance.random() < chance.choice([0, 0.001, 0.3])}
        expected = {key: value for key, value in base.items() if key not in removed} | cells
        found = merged(made(base), cells, removed)
        base = expected
        if found is None:
            continue  # the last block has gone
        anew, file = HFile.of_bytes(made(expected)), HFile.of_bytes(found)
        assert list(file.cells()) == list(anew.cells())
        assert file.entries == anew.entries == len(expected)
        names = ("hfile.LASTKEY", "minRecordKey", "maxRecordKey", "KEY_VALUE_VERSION", "schema")
        assert {name: file.info[name] for name in names} == {name: anew.info[name] for name in names}
        asked = [*expected, b"", b"zzz"]
        assert file.get(asked) == expected
        base = dict(file.cells())


def test_blocks_without_a_change_are_copied_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    base = made({b"key-%06d" % number: b"value" * 4 for number in range(20_000)})
    packed = 0
    pack = writer.gzip.compress

    def counted(body: bytes, **options: int) -> bytes:
        nonlocal packed
        packed += len(body) > 10_000
        return pack(body, **options)

    monkeypatch.setattr(writer.gzip, "compress", counted)
    assert merged(base, {b"key-000010": b"new"}, {b"key-000700"}) is not None
    assert packed <= 3, "the block of both keys, the last one, and the index"


@pytest.mark.parametrize("removed", [{b"b"}, {b"a", b"b"}])
def test_where_nothing_can_be_copied_it_is_made_anew(removed: set[bytes]) -> None:
    base = made({b"a": b"1", b"b": b"2"})
    found = merged(base, {}, removed)
    assert (
        found is None if len(removed) == 2 else list(HFile.of_bytes(found or b"").cells()) == [(b"a", b"1")]
    )

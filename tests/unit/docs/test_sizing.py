"""The numbers of the page on memory are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hudi_engine.format import worker
from hudi_engine.format.config.declared.write_options import FileOptions
from hudi_engine.format.config.options import OPTIONS
from hudi_engine.spark.services import clustering

MIB = 1 << 20
PAGE = re.sub(r"\s+", " ", (Path(__file__).parents[3] / "docs" / "sizing.md").read_text(encoding="utf-8"))


def test_defaults_in_brackets_are_those_of_the_options():
    found = re.findall(r"`(hoodie\.[\w.]+)` \((\d+) MiB\)", PAGE)
    assert len(found) >= 2
    assert {key: int(size) * MIB for key, size in found} == {key: OPTIONS[key].default for key, _ in found}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("files of the default size ({} MiB)", FileOptions.MAX_FILE_SIZE.default),
        ("Files of the default size need {} MiB", worker.LEAST_MEMORY),
        ("keeps columns of up to {} MiB", worker._LARGE),
        ("compaction and clustering of less than {} MiB", clustering._MIN_BYTES),
    ],
)
def test_sizes_in_the_text_are_those_of_the_code(text, size):
    assert text.format(size // MIB) in PAGE

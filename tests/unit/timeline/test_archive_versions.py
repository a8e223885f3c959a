"""Blocks of the archive log as older releases of Hudi wrote them."""

from __future__ import annotations

import struct

import pytest
from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.timeline.archive_files import encode_archive_block, read_archive_log


def _of_version(version: int) -> bytes:
    """A block of one record; its content begins with its version and how many records it has."""
    whole = encode_archive_block([{"commitTime": "20240101000001000", "actionType": "commit"}])
    place = whole.rindex(struct.pack(">ii", 3, 1))
    return whole[:place] + struct.pack(">i", version) + whole[place + 4 :]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_all_content_versions_have_one_layout(version: int) -> None:
    (record,) = read_archive_log(_of_version(version), "a")

    assert (record["commitTime"], record["actionType"]) == ("20240101000001000", "commit")


def test_a_block_of_an_unknown_content_version_is_refused() -> None:
    with pytest.raises(
        UnsupportedTableError, match="a: an Avro log block has content version 4; known are 1, 2"
    ):
        list(read_archive_log(_of_version(4), "a"))

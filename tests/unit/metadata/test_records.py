"""Records of the metadata table: bytes of Apache Hudi, and how two of one key are merged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hudi_engine.errors import CorruptTableError
from hudi_engine.format.metadata.records import (
    MetadataPartition,
    decode_record,
    encode_record,
    merge_records,
    record_schema,
    with_meta_columns,
)

# A location and a list of partitions that Apache Hudi 1.2.0 wrote.
LOCATION = bytes.fromhex(
    "00000000000 00a 00000002021a64743d323032342d30312d3031 02ee8ceab0b7f0c78279"
    "0295e0acc2a2a59493d901 0200 0200 02f0f8c4b0c468 000000".replace(" ", "")
)
PARTITIONS = bytes.fromhex(
    "00000000000002020 21a64743d323032342d30312d303100000 0000000000000".replace(" ", "")
)
SCHEMA = json.dumps(with_meta_columns(record_schema(9)))


def test_a_location_is_read_as_hudi_wrote_it_and_written_so() -> None:
    record = decode_record(LOCATION, SCHEMA)

    location = record["recordIndexMetadata"]
    assert location["partitionName"] == "dt=2024-01-01"
    assert (location["fileIdHighBits"], location["fileIdLowBits"]) == (
        4360205451477730103,
        -7823641598425929739,
    )
    assert (location["fileIndex"], location["instantTime"]) == (0, 1795884097080)
    assert encode_record({"type": 5, "recordIndexMetadata": location}, SCHEMA) == LOCATION


def test_a_list_of_partitions_is_read_as_hudi_wrote_it() -> None:
    assert decode_record(PARTITIONS, SCHEMA)["filesystemMetadata"] == {
        "dt=2024-01-01": {"size": 0, "isDeleted": False}
    }


@pytest.mark.parametrize(("version", "members"), [(6, 6), (8, 7), (9, 7)])
def test_each_version_has_its_members(version: int, members: int) -> None:
    schema = record_schema(version)

    assert len(schema["fields"]) == members
    assert ("valueType" in json.dumps(schema), "isTightBound" in json.dumps(schema)) == (
        version >= 9,
        version >= 8,
    )


def test_bytes_that_are_no_record_are_refused() -> None:
    with pytest.raises(CorruptTableError, match="metadata table"):
        decode_record(b"\x02", SCHEMA)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("files", MetadataPartition.FILES),
        ("secondary_index_idx", MetadataPartition.SECONDARY_INDEX),
        ("expr_index_x", MetadataPartition.EXPRESSION_INDEX),
        ("files_more", None),
    ],
)
def test_partitions_are_known_by_their_names(name: str, kind: MetadataPartition | None) -> None:
    assert MetadataPartition.of(name) is kind


def files(**sizes: int) -> dict[str, Any]:
    """Sizes of files; -1 for one that is deleted."""
    return {
        "type": 2,
        "filesystemMetadata": {
            name: {"size": max(size, 0), "isDeleted": size < 0} for name, size in sizes.items()
        },
    }


@pytest.mark.parametrize(
    ("older", "newer", "merged"),
    [
        (files(a=1), files(b=2), files(a=1, b=2)),
        (files(a=1, b=2), files(a=-1), files(b=2)),
        (files(b=2), files(a=-1), files(b=2, a=-1)),
        (files(a=5), files(a=3), files(a=5)),
        (files(a=-1), files(a=3), files(a=3)),
    ],
)
def test_files_are_merged_by_name(
    older: dict[str, Any], newer: dict[str, Any], merged: dict[str, Any]
) -> None:
    assert merge_records(MetadataPartition.FILES, older, newer) == merged


def bounds(low: int, high: int, *, tight: bool = False) -> dict[str, Any]:
    name = "org.apache.hudi.avro.model.IntWrapper"
    statistics = {
        "minValue": (name, {"value": low}),
        "maxValue": (name, {"value": high}),
        "valueCount": 1,
        "isDeleted": False,
        "isTightBound": tight,
    }
    return {"type": 6, "ColumnStatsMetadata": statistics}


def test_loose_bounds_of_a_partition_cover_both() -> None:
    merged = merge_records(MetadataPartition.PARTITION_STATS, bounds(3, 5), bounds(4, 9))

    assert merged is not None
    statistics = merged["ColumnStatsMetadata"]
    assert (statistics["minValue"][1]["value"], statistics["maxValue"][1]["value"]) == (3, 9)
    assert statistics["valueCount"] == 2


def test_tight_bounds_replace_older_ones() -> None:
    newer = bounds(4, 6, tight=True)

    assert merge_records(MetadataPartition.PARTITION_STATS, bounds(3, 9), newer) == newer

"""Where a row is, as the record index stores it.

Source: Hudi metadata table format, record index. The id of a file group is stored as the two halves of its UUID and a number;
an id of another form as text.
"""

from __future__ import annotations

import re
import uuid
from typing import NamedTuple

from hudi_engine.format.metadata.records import Record

RECORD_INDEX_TYPE = 5
_UUID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:-(0|[1-9][0-9]{0,8}))?\Z", re.ASCII)
_HALF = 1 << 64


class Location(NamedTuple):
    """The file group of a row."""

    partition: str
    file_id: str


def location_record(location: Location, millis: int) -> Record:
    """Return the record of a location.

    Args:
        millis: Time of the commit that put the row there, in milliseconds since 1970.
    """
    found = _UUID.match(location.file_id)
    member = {
        "partitionName": location.partition,
        "fileIdHighBits": -1,
        "fileIdLowBits": -1,
        "fileIndex": -1,
        "fileId": location.file_id,
        "instantTime": millis,
        "fileIdEncoding": 1,
        "position": None,
    }
    if found is not None:
        number = uuid.UUID(found[1]).int
        member.update(
            fileIdHighBits=_signed(number >> 64),
            fileIdLowBits=_signed(number % _HALF),
            fileIndex=-1 if found[2] is None else int(found[2]),
            fileId="",
            fileIdEncoding=0,
        )
    return {"type": RECORD_INDEX_TYPE, "recordIndexMetadata": member}


def location_of(record: Record) -> Location:
    """Return the location in a record."""
    member = record["recordIndexMetadata"]
    if member.get("fileIdEncoding"):
        return Location(member["partitionName"], member["fileId"])
    halves = (member["fileIdHighBits"] % _HALF) << 64 | member["fileIdLowBits"] % _HALF
    index = "" if member["fileIndex"] == -1 else f"-{member['fileIndex']}"
    return Location(member["partitionName"], f"{uuid.UUID(int=halves)}{index}")


def _signed(half: int) -> int:
    return half - _HALF if half >= _HALF // 2 else half

"""Handmade tables for the tests of publishing."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.helpers.handmade import HandmadeTable

SCHEMA = pa.schema([("id", pa.int64()), ("dt", pa.string()), ("v", pa.string())])


def rows(*ids, dt="x", v="a"):
    """Rows with the given ids."""
    return pa.table({"id": list(ids), "dt": [dt] * len(ids), "v": [v] * len(ids)}, schema=SCHEMA)


@pytest.fixture
def cow(tmp_path):
    """An empty copy-on-write table with hive-style folders by dt."""
    return HandmadeTable(tmp_path / "cow", SCHEMA, ("dt",))


@pytest.fixture
def mor(tmp_path):
    """A merge-on-read table: file group ``f-0`` with ids 1 to 3 in dt=x, ``g-0`` with id 4 in dt=y."""
    table = HandmadeTable(tmp_path / "mor", SCHEMA, ("dt",), merge_on_read=True)
    table.first = table.commit({"dt=x": {"f-0": rows(1, 2, 3)}, "dt=y": {"g-0": rows(4, dt="y")}})
    return table


def log_update(table, *ids, partition="dt=x", file_id="f-0", dt="x"):
    """Commit new versions of rows as a log file; returns the instant."""
    instant = table.next_instant()
    blocks = table.data_blocks(partition, file_id, rows(*ids, dt=dt, v="log"), instant)
    table.complete(instant, [table.append_log(partition, file_id, table.first, blocks, instant)])
    return instant

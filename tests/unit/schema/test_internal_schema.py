"""Column ids of schema on read."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hudi_engine.errors import CorruptTableError
from hudi_engine.format.schema.internal_schema import parse_history, rename_nested, restore_names


def _column(number: int, name: str, kind: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "optional": True, "type": kind}


def _version(instant: int, *columns: dict[str, Any]) -> dict[str, Any]:
    return {"version_id": instant, "max_column_id": 9, "type": "record", "fields": list(columns)}


POINT = {"type": "record", "fields": [_column(5, "x", "int"), _column(6, "y", "int")]}
POINT_RENAMED = {"type": "record", "fields": [_column(6, "why", "int"), _column(5, "x", "int")]}
HISTORY = json.dumps(
    {
        "schemas": [
            _version(
                30, _column(1, "id", "string"), _column(4, "qty", "long"), _column(3, "p", POINT_RENAMED)
            ),
            _version(20, _column(1, "id", "string"), _column(2, "amount", "int"), _column(3, "p", POINT)),
            _version(0, _column(1, "id", "string"), _column(2, "qty", "int"), _column(3, "p", POINT)),
        ]
    }
)
STORED = pa.schema(
    [("id", pa.string()), ("qty", pa.int32()), ("p", pa.struct([("x", pa.int32()), ("y", pa.int32())]))]
)


def test_a_file_has_the_newest_version_not_younger_than_itself() -> None:
    history = parse_history(HISTORY, "h")

    names = {
        instant: [c.name for c in history.version_at(instant).children] for instant in ("5", "20", "29", "30")
    }
    assert names == {
        "5": ["id", "qty", "p"],
        "20": ["id", "amount", "p"],
        "29": ["id", "amount", "p"],
        "30": ["id", "qty", "p"],
    }


@pytest.mark.parametrize(("instant", "name"), [("20260301120000", "old"), ("20260301120001", "new")])
def test_an_instant_of_14_digits_stands_before_those_of_its_second(instant: str, name: str) -> None:
    versions = [_version(0, _column(1, "old", "int")), _version(20260301120000500, _column(1, "new", "int"))]
    history = parse_history(json.dumps({"schemas": versions}), "h")

    assert history.version_at(instant).children[0].name == name
    assert history.up_to(instant).newest() == history.newest(instant)
    assert f'"{name}"' in history.text_at(instant)


def test_a_renamed_column_is_found_under_its_old_name() -> None:
    history = parse_history(HISTORY, "h")
    wanted = pa.schema([("id", pa.string()), ("amount", pa.int32())])

    assert restore_names(STORED, history.version_at("5"), history.version_at("20"), wanted) == {
        "id": "id",
        "amount": "qty",
    }


def test_a_new_column_with_the_name_of_a_dropped_one_is_not_its_old_values() -> None:
    history = parse_history(HISTORY, "h")
    wanted = pa.schema([("id", pa.string()), ("qty", pa.int64())])

    assert restore_names(STORED, history.version_at("5"), history.newest(), wanted) == {"id": "id"}


@pytest.mark.parametrize(
    ("now", "names", "expected"),
    [
        ([_column(3, "p", POINT), _column(1, "id", "long"), _column(4, "new", "int")], ["id"], True),
        ([_column(1, "id", "int")], ["id"], True),
        ([_column(1, "key", "int"), _column(3, "p", POINT)], ["key"], False),
        ([_column(1, "id", "int"), _column(3, "p", POINT_RENAMED)], ["id"], False),
        ([_column(1, "id", "int"), _column(4, "P", "int")], ["id"], False),
        ([_column(1, "id", "int")], ["id", "P"], False),
    ],
    ids=[
        "added-and-moved",
        "dropped",
        "renamed",
        "field-renamed",
        "name-of-a-dropped",
        "later-under-that-name",
    ],
)
def test_files_are_read_by_name_as_long_as_no_name_means_another_column(
    now: Any, names: list[str], expected: bool
) -> None:
    first = _version(0, _column(1, "id", "int"), _column(3, "p", POINT))
    history = parse_history(json.dumps({"schemas": [first, _version(9, *now)]}), "h")

    assert history.is_read_by_name("5", names) is expected
    assert history.is_read_by_name("9", names)


POINTS = pa.struct([("x", pa.int32()), ("y", pa.int32())])
LIST = {"type": "array", "element_id": 7, "element_optional": True}
MAP = {"type": "map", "key_id": 7, "key": "string", "value_id": 8, "value_optional": True}


@pytest.mark.parametrize(
    ("kind", "value", "before", "after", "expected"),
    [
        (POINTS, {"x": 1, "y": 2}, POINT, POINT_RENAMED, {"x": 1, "why": 2}),
        (
            pa.list_(POINTS),
            [{"x": 1, "y": 2}, None],
            {**LIST, "element": POINT},
            {**LIST, "element": POINT_RENAMED},
            [{"x": 1, "why": 2}, None],
        ),
        (
            pa.map_(pa.string(), POINTS),
            [("k", {"x": 1, "y": 2})],
            {**MAP, "value": POINT},
            {**MAP, "value": POINT_RENAMED},
            [("k", {"x": 1, "why": 2})],
        ),
    ],
    ids=["struct", "list", "map"],
)
def test_fields_inside_a_column_are_renamed(
    kind: pa.DataType, value: Any, before: Any, after: Any, expected: Any
) -> None:
    versions = [_version(0, _column(3, "p", before)), _version(9, _column(3, "p", after))]
    history = parse_history(json.dumps({"schemas": versions}), "h")
    written, wanted = (history.version_at(instant).children[0] for instant in ("1", "9"))

    renamed = rename_nested(pa.array([None, value, None], kind).slice(1), written, wanted)

    assert renamed.to_pylist() == [expected, None]


def test_versions_of_commits_that_did_not_complete_are_left_out() -> None:
    history = parse_history(HISTORY, "h", lambda instant: instant == "20")

    assert [column.name for column in history.newest().children] == ["id", "amount", "p"]


@pytest.mark.parametrize("text", ["", "{", "{}", '{"schemas": [{"version_id": "x"}]}', '{"schemas": []}'])
def test_a_damaged_history_is_one_clear_error(text: str) -> None:
    with pytest.raises(CorruptTableError, match="'h.schemacommit'"):
        parse_history(text, "h.schemacommit")


def test_a_column_that_came_after_the_last_change_is_not_a_dropped_one_of_its_name() -> None:
    history = parse_history(HISTORY, "h")
    wanted = pa.schema([("id", pa.string()), ("amount", pa.int32())])
    stored = pa.schema([("id", pa.string()), ("amount", pa.int32())])

    assert restore_names(stored, history.version_at("20"), history.newest(), wanted) == {"id": "id"}
    assert restore_names(stored, history.newest(), history.newest(), wanted)["amount"] == "amount"

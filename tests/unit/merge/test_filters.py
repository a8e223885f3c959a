"""Filters of a read given as text for columns that hold something else."""

from __future__ import annotations

import operator as python_operators
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hudi_engine.errors import ConfigError, HudiError, SchemaError
from hudi_engine.format.merge.filters import as_expression, parse_filter

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
ROWS = pa.table(
    {
        "day": pa.array([date(2026, 1, day) for day in (1, 2, 3)]),
        "at": pa.array([START + timedelta(hours=hour) for hour in (0, 1, 2)], pa.timestamp("us", "UTC")),
        "local": pa.array([datetime(2026, 1, 1, hour) for hour in (0, 1, 2)], pa.timestamp("us")),
        "price": pa.array([Decimal("1.10"), Decimal("2.20"), Decimal("3.30")], pa.decimal128(5, 2)),
        "name": pa.array(["a", "b", "c"]),
    }
)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (("day", ">=", "2026-01-02"), "bc"),
        (("day", "in", ["2026-01-01", date(2026, 1, 3)]), "ac"),
        (("day", "not in", ["2026-01-01"]), "bc"),
        (("at", ">", "2026-01-01"), "bc"),
        (("at", ">=", "2026-01-01 01:00:00"), "bc"),
        (("at", "=", "2026-01-01T03:00:00+02:00"), "b"),
        (("local", "<", "2026-01-01 01:00:00"), "a"),
        (("price", "=", "2.2"), "b"),
        (("price", "<", Decimal("2.20")), "a"),
        (("price", "<", "2.205"), "ab"),
        (("price", ">=", "1.1000000"), "abc"),
        (("price", "=", "2.205"), ""),
        (("price", "<", "1e20"), "abc"),
        (("name", "=", "b"), "b"),
    ],
    ids=str,
)
def test_text_is_read_as_what_the_column_holds(given: tuple[Any, ...], names: str) -> None:
    assert "".join(ROWS.filter(as_expression([given], ROWS.schema))["name"].to_pylist()) == names


@pytest.mark.parametrize(
    "given",
    [
        ("day", "=", "2026-13-01"),
        ("at", "in", ["soon"]),
        ("price", "<", "much"),
        ("price", "<", "inf"),
        ("price", "<", "1_0"),
    ],
)
def test_text_that_is_no_such_value_is_refused_by_name(given: tuple[Any, ...]) -> None:
    with pytest.raises(SchemaError, match="which is none"):
        as_expression([given], ROWS.schema)


@pytest.mark.parametrize(("precision", "scale"), [(5, 2), (18, 6), (38, 0), (38, 18), (38, 37)])
@pytest.mark.parametrize("zero", [0, "0", Decimal(0)], ids=repr)
def test_a_whole_number_is_compared_with_decimals_of_any_precision(
    precision: int, scale: int, zero: object
) -> None:
    rows = pa.table(
        {"d": pa.array([Decimal(-1), Decimal(0), Decimal(1), None], pa.decimal128(precision, scale))}
    )
    found = [
        rows.filter(as_expression([("d", asked, zero)], rows.schema)) for asked in ("<", "=", ">=", "!=")
    ]
    assert [each.num_rows for each in found] == [1, 1, 2, 2]
    either = rows.filter(as_expression([("d", "in", [zero, 1])], rows.schema))
    assert either["d"].to_pylist() == [0, 1]


@pytest.mark.parametrize("column", ["day", "at", "local", "price", "name", "number", "real"])
def test_nothing_is_in_an_empty_list(column: str) -> None:
    rows = ROWS.append_column("number", pa.array([1, 2, 3])).append_column("real", pa.array([1.0, 2.0, None]))
    for empty in ([], (), set()):
        assert rows.filter(as_expression([(column, "in", empty)], rows.schema)).num_rows == 0
        assert rows.filter(as_expression([(column, "not in", empty)], rows.schema)).num_rows == 3


def test_a_row_without_a_value_passes_not_in_and_no_other_operator() -> None:
    rows = pa.table({"a": ["x", None]})
    passed = {
        operator: rows.filter(as_expression([("a", operator, asked)], rows.schema))["a"].to_pylist()
        for operator, asked in [("not in", ["y"]), ("!=", "y"), ("in", ["x"]), ("<", "y")]
    }
    assert passed == {"not in": ["x", None], "!=": ["x"], "in": ["x"], "<": ["x"]}


@pytest.mark.parametrize("stored", [[0.0], [-0.0], [0.0, -0.0]], ids=str)
@pytest.mark.parametrize("asked", [[0.0], [-0.0], [0, 5.0]], ids=str)
def test_both_zeros_are_one_number(tmp_path, stored, asked):
    pq.write_table(pa.table({"d": stored}), tmp_path / "t.parquet")
    rows = ds.dataset(tmp_path / "t.parquet")
    schema = pa.schema([("d", pa.float64())])
    assert rows.to_table(filter=as_expression([("d", "in", asked)], schema)).num_rows == len(stored)
    assert rows.to_table(filter=as_expression([("d", "not in", asked)], schema)).num_rows == 0


@pytest.mark.parametrize(
    ("operator", "asked", "found"),
    [
        ("in", [0.1, 7], [1, 2]),
        ("not in", [0.1], [3]),
        ("=", 0.1, [1, 2]),
        ("!=", 0.1, [3]),
        ("<=", 0.1, [1, 2]),
        (">", 0.1, [3]),
    ],
)
def test_a_number_is_compared_in_the_width_of_its_column_in_whatever_file_a_row_lies(
    tmp_path, operator, asked, found
):
    for number, (ids, values) in enumerate([([1], [0.1]), ([2, 3], [0.1, 0.2])]):
        rows = pa.table({"id": ids, "f": pa.array(values, pa.float32())})
        pq.write_table(rows, tmp_path / f"{number}.parquet")
    expression = as_expression([("f", operator, asked)], pa.schema([("f", pa.float32())]))
    assert sorted(ds.dataset(tmp_path).to_table(filter=expression)["id"].to_pylist()) == found


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("f", 1e300),
        ("f", 10**400),
        ("f", Decimal("1e39")),
        ("f", "-1e400"),
        ("f", b"1e300"),
        ("f", "many"),
        ("n", 1.5),
        ("n", Decimal("-0.5")),
        ("n", float("inf")),
        ("n", float("nan")),
        ("n", 2**63),
        ("n", -(2**70)),
        ("n", Decimal(2) ** 70),
    ],
    ids=str,
)
@pytest.mark.parametrize("operator", ["=", "!=", "<", ">=", "in", "not in"])
def test_a_number_that_the_column_cannot_hold_is_refused(column: str, value: Any, operator: str) -> None:
    schema = pa.schema({"f": pa.float32(), "n": pa.int64()})
    asked = [value] if "in" in operator else value
    with pytest.raises(SchemaError, match=f"compares a {schema.field(column).type} with .*pyarrow.compute"):
        as_expression([(column, operator, asked)], schema)


@pytest.mark.parametrize("far", [10**9, "2.205", Decimal("1.234567"), Decimal(10) ** 40], ids=repr)
def test_members_with_more_digits_than_a_decimal_column_are_refused(far: object) -> None:
    with pytest.raises(SchemaError, match="compares a decimal"):
        as_expression([("price", "in", [far, "2.2"])], ROWS.schema)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_a_text_in_a_list_is_the_number_that_it_says(kind: pa.DataType) -> None:
    rows = pa.table({"f": pa.array([1.5, 0.1, -0.0, float("-inf"), None], kind)})
    for asked, found in [
        (["1.5", "-inf"], [1.5, float("-inf")]),
        (["0.1", 1.5], [1.5, rows["f"][1].as_py()]),
        (["0"], [0.0]),
    ]:
        assert rows.filter(as_expression([("f", "in", asked)], rows.schema))["f"].to_pylist() == found


def test_a_number_a_little_above_the_greatest_of_a_column_is_the_greatest() -> None:
    greatest = float.fromhex("0x1.fffffep+127")
    rows = pa.table({"f": pa.array([greatest, float("inf")], pa.float32())})
    for asked in (("=", 3.4028235e38), ("in", [3.4028235e38]), (">=", 3.4028235e38)):
        found = rows.filter(as_expression([("f", *asked)], rows.schema))["f"].to_pylist()
        assert found[0] == greatest and len(found) == (2 if asked[0] == ">=" else 1)


NUMBERS = [None, 0, 1, -1, 2, 2**53 + 1, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize("asked", [1.0, 0.0, -(2.0**63), 2, -1, Decimal("-1.00")], ids=str)
def test_whole_numbers_are_compared_as_python_does_it(operator: str, asked: Any) -> None:
    rows = pa.table({"n": pa.array(NUMBERS, pa.int64())})
    compare = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}[operator]
    wanted = [
        each for each in NUMBERS if each is not None and getattr(python_operators, compare)(each, asked)
    ]
    assert rows.filter(as_expression([("n", operator, asked)], rows.schema))["n"].to_pylist() == wanted


@pytest.mark.parametrize("column", ["day", "at", "local", "price", "name", "number", "real"])
def test_members_may_come_one_by_one_or_as_arrows(column: str) -> None:
    rows = ROWS.append_column("number", pa.array([1, 2, 3])).append_column("real", pa.array([1.0, 2.0, 3.0]))
    values = rows[column].to_pylist()[:2]
    for given in (
        lambda: iter(values),
        lambda: (each for each in values),
        lambda: pa.array(values, rows.schema.field(column).type),
    ):
        assert rows.filter(as_expression([(column, "in", given())], rows.schema)).num_rows == 2
        assert rows.filter(as_expression([(column, "not in", given())], rows.schema)).num_rows == 1


@pytest.mark.parametrize("column", ["day", "at", "local", "price", "name", "number", "real"])
def test_none_among_the_members_means_rows_without_a_value(column: str) -> None:
    rows = ROWS.append_column("number", pa.array([1, 2, 3])).append_column("real", pa.array([1.0, 2.0, 3.0]))
    rows = pa.concat_tables(
        [rows, pa.table([pa.nulls(1, kind) for kind in rows.schema.types], schema=rows.schema)]
    )
    first = rows[column][0].as_py()
    for asked, count in [([None], 1), ([first, None], 2), ([first], 1)]:
        assert rows.filter(as_expression([(column, "in", asked)], rows.schema)).num_rows == count
        assert rows.filter(as_expression([(column, "not in", asked)], rows.schema)).num_rows == 4 - count


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name = 'b'", ("name", "=", "b")),
        ('NAME not  in (a, "b")', ("name", "not in", ["a", "b"])),
        ("n>=-3", ("n", ">=", -3)),
        ("n in 1,2", ("n", "in", [1, 2])),
        ("ok != true", ("ok", "!=", True)),
        ("day < 2026-01-02", ("day", "<", "2026-01-02")),
    ],
)
def test_a_filter_is_read_from_text(text: str, expected: tuple[Any, ...]) -> None:
    more = {"n": pa.array([1, 2, 3]), "ok": pa.array([True, False, None])}
    rows = pa.table({**dict(zip(ROWS.column_names, ROWS.columns, strict=True)), **more})
    assert parse_filter(text, rows.schema) == expected
    as_expression([parse_filter(text, rows.schema)], rows.schema)


@pytest.mark.parametrize(
    ("text", "error", "reason"),
    [
        ("name", ConfigError, "write a column, one of =, ==, "),
        ("nobody = 1", SchemaError, "names an unknown column; the table has day, "),
        ("n = many", SchemaError, "compares n, which is int64"),
    ],
)
def test_text_that_is_no_filter_is_refused(text: str, error: type[HudiError], reason: str) -> None:
    with pytest.raises(error, match=reason):
        parse_filter(text, ROWS.schema.append(pa.field("n", pa.int64())))

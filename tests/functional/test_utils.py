"""dbt's cross-database macros on Spark."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.utils.base_utils import BaseUtils
from dbt.tests.adapter.utils.data_types.test_type_bigint import BaseTypeBigInt
from dbt.tests.adapter.utils.data_types.test_type_boolean import BaseTypeBoolean
from dbt.tests.adapter.utils.data_types.test_type_float import BaseTypeFloat
from dbt.tests.adapter.utils.data_types.test_type_int import BaseTypeInt
from dbt.tests.adapter.utils.data_types.test_type_numeric import BaseTypeNumeric
from dbt.tests.adapter.utils.data_types.test_type_string import BaseTypeString
from dbt.tests.adapter.utils.data_types.test_type_timestamp import BaseTypeTimestamp
from dbt.tests.adapter.utils.test_any_value import BaseAnyValue
from dbt.tests.adapter.utils.test_array_append import BaseArrayAppend
from dbt.tests.adapter.utils.test_array_concat import BaseArrayConcat
from dbt.tests.adapter.utils.test_array_construct import BaseArrayConstruct
from dbt.tests.adapter.utils.test_bool_or import BaseBoolOr
from dbt.tests.adapter.utils.test_cast import BaseCast
from dbt.tests.adapter.utils.test_cast_bool_to_text import BaseCastBoolToText
from dbt.tests.adapter.utils.test_concat import BaseConcat
from dbt.tests.adapter.utils.test_current_timestamp import BaseCurrentTimestampNaive
from dbt.tests.adapter.utils.test_date import BaseDate
from dbt.tests.adapter.utils.test_date_spine import BaseDateSpine
from dbt.tests.adapter.utils.test_date_trunc import BaseDateTrunc
from dbt.tests.adapter.utils.test_dateadd import BaseDateAdd
from dbt.tests.adapter.utils.test_datediff import BaseDateDiff
from dbt.tests.adapter.utils.test_equals import BaseEquals
from dbt.tests.adapter.utils.test_escape_single_quotes import BaseEscapeSingleQuotesBackslash
from dbt.tests.adapter.utils.test_except import BaseExcept
from dbt.tests.adapter.utils.test_generate_series import BaseGenerateSeries
from dbt.tests.adapter.utils.test_get_powers_of_two import BaseGetPowersOfTwo
from dbt.tests.adapter.utils.test_hash import BaseHash
from dbt.tests.adapter.utils.test_intersect import BaseIntersect
from dbt.tests.adapter.utils.test_last_day import BaseLastDay
from dbt.tests.adapter.utils.test_length import BaseLength
from dbt.tests.adapter.utils.test_null_compare import BaseMixedNullCompare, BaseNullCompare
from dbt.tests.adapter.utils.test_position import BasePosition
from dbt.tests.adapter.utils.test_replace import BaseReplace
from dbt.tests.adapter.utils.test_right import BaseRight
from dbt.tests.adapter.utils.test_safe_cast import BaseSafeCast
from dbt.tests.adapter.utils.test_source_freshness_custom_info import BaseCalculateFreshnessMethod
from dbt.tests.adapter.utils.test_split_part import BaseSplitPart
from dbt.tests.adapter.utils.test_string_literal import BaseStringLiteral
from dbt.tests.adapter.utils.test_validate_sql import BaseValidateSqlMethod
from dbt.tests.util import run_dbt

# Classes of the suite that are seeds and models with tests, and nothing else: for the gate one project holds them all.
PLAIN = (
    BaseAnyValue,
    BaseBoolOr,
    BaseCast,
    BaseCastBoolToText,
    BaseConcat,
    BaseDate,
    BaseDateSpine,
    BaseDateTrunc,
    BaseDateDiff,
    BaseEscapeSingleQuotesBackslash,
    BaseGenerateSeries,
    BaseGetPowersOfTwo,
    BaseHash,
    BaseLastDay,
    BaseLength,
    BaseNullCompare,
    BasePosition,
    BaseReplace,
    BaseRight,
    BaseSafeCast,
    BaseSplitPart,
    BaseStringLiteral,
)


def files(kind: str) -> dict[str, str]:
    """Seeds or models of all of them; no two classes have a file of the same name."""
    of_each = [getattr(base, kind).__wrapped__(base()) for base in PLAIN if hasattr(base, kind)]
    found = {name: text for each in of_each for name, text in each.items()}
    assert len(found) == sum(map(len, of_each))
    return found


class TestCrossDatabaseMacros(BaseUtils):
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return files("seeds")

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return files("models")

    def test_build_assert_equal(self, project: Any) -> None:
        results = {result.node.name: result.status for result in run_dbt(["build", "--threads", "2"])}
        assert set(results.values()) == {"success", "pass"}, results
        tested = {node for node, status in results.items() if status == "pass"}
        assert len(tested) >= len(PLAIN)
        assert {name.partition(".")[0] for name in files("models")} <= results.keys()


MOMENT = "timestamp'2024-03-09 23:30:00.123456'"
LATER = {
    "day": ("1", "2024-03-10 23:30:00.123456"),
    "week": ("-1", "2024-03-02 23:30:00.123456"),
    "month": ("n * -1", "2024-02-09 23:30:00.123456"),
    "quarter": ("1", "2024-06-09 23:30:00.123456"),
    "year": ("-1", "2023-03-09 23:30:00.123456"),
    "hour": ("1.5", "2024-03-10 01:00:00.123456"),
    "minute": ("n", "2024-03-09 23:31:00.123456"),
    "second": ("-1", "2024-03-09 23:29:59.123456"),
    "millisecond": ("5000000000", "2024-05-06 20:23:20.123456"),
    "microsecond": ("1", "2024-03-09 23:30:00.123457"),
}
# Counts of int whose microseconds are no int: the type of an interval is that of its expression.
FAR = {
    "minute": ("60 * n", "2024-03-10 00:30:00.123456"),
    "second": ("86400 * n", "2024-03-10 23:30:00.123456"),
    "millisecond": ("2147485 * n", "2024-03-10 00:05:47.608456"),
}
APART = [
    ("minute", "01:59:01", "01:59:59", 0),
    ("minute", "01:59:59", "02:00:00", 1),
    ("hour", "01:01:00", "01:59:00", 0),
    ("hour", "01:59:00", "00:00:00", -1),
    ("second", "01:59:00.9", "01:59:01.1", 1),
    ("millisecond", "01:59:00", "01:59:00.0015", 1),
    ("microsecond", "01:59:00", "01:59:00.000005", 5),
    ("microsecond", "01:59:00.5", "01:59:00", -500_000),
    ("day", "2024-03-09 23:59:59", "2024-03-10 00:00:00", 1),
    ("week", "2024-03-09 23:59:59", "2024-03-10 00:00:00", 1),
    ("week", "2024-03-11", "2024-03-10", 0),
    ("month", "2024-03-31", "2024-04-01", 1),
    ("quarter", "2024-04-01", "2024-03-31", -1),
    ("year", "2023-12-31 23:59:59", "2024-01-01", 1),
]
ORDERED = {
    "order by n": "c|b|a|d",
    "order by n desc": "d|a|b|c",
    "order by n desc nulls first, x": "c|d|a|b",
    "order by n nulls last": "b|a|d|c",
    "order by x desc": "d|c|b|a",
    "order by lower(x) desc, n": "d|c|b|a",
    "order by n % 2 desc, x": "a|b|d|c",
}


def _moment(text: str) -> str:
    return f"2024-03-09 {text}" if text[2] == ":" else text


@pytest.mark.core
class TestMomentsAndOrders:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        moments = ", ".join(
            f"{{{{ dbt.dateadd('{part}', '{count}', \"{MOMENT}\") }}}} as m{number}"
            for number, (part, (count, _)) in enumerate([*LATER.items(), *FAR.items()])
        )
        texts = ", ".join(
            f"{{{{ dbt.listagg('x', \"'|'\", '{order}', {limit}) }}}} as t{number}_{limit}"
            for number, order in enumerate(ORDERED)
            for limit in ("none", 2)
        )
        apart = ", ".join(
            f"{{{{ dbt.datediff(\"timestamp'{_moment(one)}'\", \"timestamp'{_moment(other)}'\", '{part}') }}}} as d{number}"
            for number, (part, one, other, _) in enumerate(APART)
        )
        rows = "select * from values ('a', 3), ('c', null), ('b', 1), ('d', 4) as t(x, n)"
        return {
            "moments.sql": f"select {moments} from (select 1 as n)",
            "minutes.sql": "{{ dbt.date_spine('minute', \"timestamp'2024-03-09 23:00:00'\", \"timestamp'2024-03-10 00:00:00'\") }}",
            "apart.sql": f"select {apart}",
            "distinct_texts.sql": "select {{ dbt.listagg('distinct x', \"','\", 'order by x desc') }} as t from values ('b'), ('a'), ('b') as t(x)",
            "texts.sql": f"select {texts} from ({rows})",
        }

    def test_fractions_of_seconds_stay_and_texts_come_in_any_order(self, project: Any) -> None:
        run_dbt(["run"])
        (found,) = project.run_sql("select * from {schema}.moments", fetch="all")
        assert [str(each) for each in found] == [text for _, text in (*LATER.values(), *FAR.values())]
        spine = "select count(distinct date_minute), cast(max(date_minute) as string) from {schema}.minutes"
        assert [*project.run_sql(spine, fetch="one")] == [60, "2024-03-09 23:59:00"]
        (found,) = project.run_sql("select * from {schema}.texts", fetch="all")
        assert [*found] == [text[:length] for text in ORDERED.values() for length in (7, 3)]
        assert project.run_sql("select t from {schema}.distinct_texts", fetch="one")[0] == "b,a"
        (found,) = project.run_sql("select * from {schema}.apart", fetch="all")
        assert [*found] == [count for *_, count in APART]

    def test_hours_pass_whatever_the_clock_is_set_to(self, project: Any) -> None:
        run_dbt(["list"])
        with project.adapter.connection_named("zone"):
            later = [
                project.adapter.execute_macro(
                    "dateadd",
                    kwargs={
                        "datepart": "hour",
                        "interval": hours,
                        "from_date_or_timestamp": "timestamp'2024-03-09 12:00:00'",
                    },
                )
                for hours in (23, 24)
            ]
            with project.adapter.connections.get_thread_connection().handle.job("zone") as session:
                session.conf.set("spark.sql.session.timeZone", "America/New_York")
                try:
                    found = session.sql(
                        f"select {', '.join(f'cast({each} as string)' for each in later)}"
                    ).first()
                finally:
                    session.conf.set("spark.sql.session.timeZone", "UTC")
        assert [*found] == ["2024-03-10 12:00:00", "2024-03-10 13:00:00"]


@pytest.mark.long
class TestAnyValue(BaseAnyValue):
    pass


@pytest.mark.long
class TestArrayAppend(BaseArrayAppend):
    pass


@pytest.mark.long
class TestArrayConcat(BaseArrayConcat):
    pass


@pytest.mark.long
class TestArrayConstruct(BaseArrayConstruct):
    pass


@pytest.mark.long
class TestBoolOr(BaseBoolOr):
    pass


@pytest.mark.long
class TestCast(BaseCast):
    pass


@pytest.mark.long
class TestCastBoolToText(BaseCastBoolToText):
    pass


@pytest.mark.long
class TestConcat(BaseConcat):
    pass


@pytest.mark.long
class TestCurrentTimestampNaive(BaseCurrentTimestampNaive):
    pass


@pytest.mark.long
class TestDate(BaseDate):
    pass


@pytest.mark.long
class TestDateSpine(BaseDateSpine):
    pass


@pytest.mark.long
class TestDateTrunc(BaseDateTrunc):
    pass


class TestDateAdd(BaseDateAdd):
    pass


@pytest.mark.long
class TestDateDiff(BaseDateDiff):
    pass


class TestDatesOfOneCall:
    """Each argument stands once in what a macro says of it, so that nested calls do not grow by powers."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        parts = ("week", "month", "minute", "microsecond")
        gaps = ", ".join(f"{{{{ datediff('first', 'second', '{part}') }}}} as {part}s" for part in parts)
        return {
            "gaps.sql": f"select {gaps} from values ('2024-01-01', null), (null, '2024-01-01') t(first, second)"
        }

    def test_a_date_is_said_once_and_of_none_nothing_is_known(self, project: Any) -> None:
        (result,) = run_dbt(["run"])
        (found,) = project.run_sql(
            "select count(weeks), count(months), count(minutes), count(microseconds) from {schema}.gaps",
            fetch="all",
        )
        assert [*found] == [0, 0, 0, 0]
        assert result.node.compiled_code.count("cast(second as") == 4


@pytest.mark.long
class TestEquals(BaseEquals):
    pass


@pytest.mark.long
class TestEscapeSingleQuotesBackslash(BaseEscapeSingleQuotesBackslash):
    pass


class TestExcept(BaseExcept):
    pass


@pytest.mark.long
class TestGenerateSeries(BaseGenerateSeries):
    pass


@pytest.mark.long
class TestGetPowersOfTwo(BaseGetPowersOfTwo):
    pass


@pytest.mark.long
class TestHash(BaseHash):
    pass


@pytest.mark.long
class TestIntersect(BaseIntersect):
    pass


@pytest.mark.long
class TestLastDay(BaseLastDay):
    pass


@pytest.mark.long
class TestLength(BaseLength):
    pass


@pytest.mark.long
class TestMixedNullCompare(BaseMixedNullCompare):
    pass


@pytest.mark.long
class TestNullCompare(BaseNullCompare):
    pass


@pytest.mark.long
class TestPosition(BasePosition):
    pass


@pytest.mark.long
class TestReplace(BaseReplace):
    pass


@pytest.mark.long
class TestRight(BaseRight):
    pass


@pytest.mark.long
class TestSafeCast(BaseSafeCast):
    pass


class TestCalculateFreshnessMethod(BaseCalculateFreshnessMethod):
    pass


@pytest.mark.long
class TestSplitPart(BaseSplitPart):
    pass


@pytest.mark.long
class TestStringLiteral(BaseStringLiteral):
    pass


class TestValidateSqlMethod(BaseValidateSqlMethod):
    pass


@pytest.mark.long
class TestTypeBigInt(BaseTypeBigInt):
    pass


@pytest.mark.long
class TestTypeBoolean(BaseTypeBoolean):
    pass


@pytest.mark.long
class TestTypeFloat(BaseTypeFloat):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, object]:
        return {"seeds": {"test": {"expected": {"+column_types": {"float_col": "float"}}}}}


@pytest.mark.long
class TestTypeInt(BaseTypeInt):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, object]:
        return {"seeds": {"test": {"expected": {"+column_types": {"int_col": "int"}}}}}


@pytest.mark.long
class TestTypeNumeric(BaseTypeNumeric):
    pass


@pytest.mark.long
class TestTypeString(BaseTypeString):
    pass


class TestTypeTimestamp(BaseTypeTimestamp):
    pass

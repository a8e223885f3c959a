"""Snapshots: one upsert on dbt's version id."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from dbt.tests.adapter.simple_snapshot.new_record_check_mode import BaseSnapshotNewRecordCheckMode
from dbt.tests.adapter.simple_snapshot.new_record_dbt_valid_to_current import (
    BaseSnapshotNewRecordDbtValidToCurrent,
)
from dbt.tests.adapter.simple_snapshot.new_record_timestamp_mode import BaseSnapshotNewRecordTimestampMode
from dbt.tests.adapter.simple_snapshot.test_snapshot import BaseSimpleSnapshot, BaseSnapshotCheck
from dbt.tests.adapter.simple_snapshot.test_various_configs import (
    BaseSnapshotColumnNames,
    BaseSnapshotColumnNamesFromDbtProject,
    BaseSnapshotDbtValidToCurrent,
    BaseSnapshotInvalidColumnNames,
    BaseSnapshotMultiUniqueKey,
)
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file


class TestSimpleSnapshot(BaseSimpleSnapshot):
    pass


@pytest.mark.long
class TestSnapshotCheck(BaseSnapshotCheck):
    pass


class TestSnapshotNewRecordCheckMode(BaseSnapshotNewRecordCheckMode):
    pass


@pytest.mark.long
class TestSnapshotNewRecordTimestampMode(BaseSnapshotNewRecordTimestampMode):
    pass


@pytest.mark.long
class TestSnapshotNewRecordDbtValidToCurrent(BaseSnapshotNewRecordDbtValidToCurrent):
    pass


class TestSnapshotColumnNames(BaseSnapshotColumnNames):
    pass


@pytest.mark.long
class TestSnapshotColumnNamesFromDbtProject(BaseSnapshotColumnNamesFromDbtProject):
    pass


@pytest.mark.long
class TestSnapshotInvalidColumnNames(BaseSnapshotInvalidColumnNames):
    pass


class TestSnapshotDbtValidToCurrent(BaseSnapshotDbtValidToCurrent):
    pass


@pytest.mark.core
class TestSnapshotMultiUniqueKey(BaseSnapshotMultiUniqueKey):
    pass


RETURNS = """
{% snapshot NAME %}
{{ config(strategy='timestamp', unique_key='id', updated_at='at', hard_deletes='DELETES', target_schema=target.schema EXTRA) }}
select * from {{ target.schema }}.people
{% endsnapshot %}
"""
FORMS = {
    "closed": ("invalidate", ""),
    "recorded": ("new_record", ""),
    "parted": ("invalidate", ", partition_by=['city'], table_type='mor'"),
}


class TestARowThatComesBackUnchanged:
    """A deleted row that returns with the time it had has the version id that it had: dbt keeps history and takes no new row."""

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {
            f"{name}.sql": RETURNS.replace("NAME", name).replace("DELETES", deletes).replace("EXTRA", extra)
            for name, (deletes, extra) in FORMS.items()
        }

    def test_its_history_stays(self, project: Any) -> None:
        def people(*rows: str) -> None:
            project.run_sql("drop table if exists {schema}.people")
            values = ", ".join(rows)
            project.run_sql(
                f"create table {{schema}}.people using parquet as select * from values {values} as t(id, city, name, at)"
            )
            run_dbt(["snapshot"])

        def versions(name: str) -> list[tuple[Any, ...]]:
            query = f"select name, cast(dbt_valid_from as string), dbt_valid_to is null from {{schema}}.{name} where id = 3"
            return sorted(tuple(row) for row in project.run_sql(query, fetch="all"))

        stays = "(1, 'a', 'x', timestamp '2026-01-01 10:00:00')"
        people(stays, "(3, 'b', 'z', timestamp '2026-01-01 10:00:00')")
        people(stays)
        gone = {name: versions(name) for name in FORMS}
        assert gone["closed"] == gone["parted"] == [("z", "2026-01-01 10:00:00", False)]
        people(stays, "(3, 'b', 'back', timestamp '2026-01-01 10:00:00')")
        for name in ("closed", "parted"):
            assert versions(name) == gone[name]
        assert [each for each in versions("recorded") if each[0] == "back"] == []
        assert ("z", "2026-01-01 10:00:00", False) in versions("recorded")

        people(stays, "(3, 'b', 'later', timestamp '2026-01-02 10:00:00')")
        for name in FORMS:
            assert ("later", "2026-01-02 10:00:00", True) in versions(name)
            assert ("z", "2026-01-01 10:00:00", False) in versions(name)


MOVED = """
{% snapshot moved %}
{{ config(strategy='timestamp', unique_key='id', updated_at='at', target_schema=target.schema, partition_by=[var('by', 'city')]) }}
select 1 as id, 'a' as city, 'b' as land, timestamp '2026-01-01 10:00:00' as at
{% endsnapshot %}
"""


class TestAConfigThatNoLongerFits:
    """What a table cannot change is refused without the advice to build the snapshot anew, which would lose its history."""

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"moved.sql": MOVED}

    def test_it_is_refused_and_the_history_stays(self, project: Any) -> None:
        run_dbt(["snapshot"])
        (result,) = run_dbt(["snapshot", "--vars", "{by: land}"], expect_pass=False)
        assert "partition_by is land, but the table has city" in result.message
        assert "give the config that fits the table, or drop the table" in result.message
        assert "--full-refresh" not in result.message
        assert project.run_sql("select count(*) from {schema}.moved", fetch="one")[0] == 1

    @pytest.mark.parametrize(("kind", "told"), [("table", "a table of another format"), ("view", "a view")])
    def test_what_is_no_hudi_table_is_named_and_stays(self, project: Any, kind: str, told: str) -> None:
        project.run_sql("drop table if exists {schema}.moved")
        project.run_sql(
            f"create {kind} {{schema}}.moved {'using parquet' if kind == 'table' else ''} as select 7 as id"
        )
        (result,) = run_dbt(["snapshot"], expect_pass=False)
        assert f"moved is {told}, and a snapshot keeps its history in a Hudi table" in result.message
        assert "drop or rename it" in result.message and "--full-refresh" not in result.message
        assert project.run_sql("select id from {schema}.moved", fetch="one")[0] == 7
        project.run_sql(f"drop {kind} {{schema}}.moved")


ORDERED = """
{% snapshot NAME %}
{{ config(strategy='check', check_cols=['v'], unique_key='id', precombine_field='at', table_type='TYPE', target_schema=target.schema) }}
select 1 as id, '{{ var('v') }}' as v, {{ var('at') }} as at
{% endsnapshot %}
"""


class TestAnOrderThatGoesBack:
    """A version ends when its row has changed, also where the row is an older one by `precombine_field`."""

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {f"{kind}.sql": ORDERED.replace("NAME", kind).replace("TYPE", kind) for kind in ("cow", "mor")}

    def test_each_version_but_the_last_has_its_end(self, project: Any) -> None:
        for v, at in (("a", 5), ("b", 3), ("c", 4)):
            run_dbt(["snapshot", "--vars", f"{{v: {v}, at: {at}}}"])
        for kind in ("cow", "mor"):
            query = f"select v, at, dbt_valid_to is null from {{schema}}.{kind} order by dbt_valid_from"
            found = [tuple(row) for row in project.run_sql(query, fetch="all")]
            assert found == [("a", 5, False), ("b", 3, False), ("c", 4, True)], kind


def forms_of(text: str, blank: str, forms: dict[str, str]) -> dict[str, str]:
    """Snapshots of one text by their file, each with its own words in a blank."""
    return {f"{name}.sql": text.replace("NAME", name).replace(blank, said) for name, said in forms.items()}


KEYS_TWICE = """
{% snapshot NAME %}
{{ config(strategy='check', check_cols='all', unique_key='id', target_schema=target.schema PARTED) }}
select 1 as id, 'a' as v, 0 as p from range(1) where 'once' in ({{ var('rows') }})
union all
select 1 as id, x.v, 0 as p from values ('b'), ('c') as x(v) where 'twice' in ({{ var('rows') }})
{% endsnapshot %}
"""


class TestKeysTwice:
    """A key that the query has twice is said, as in a model: there is one version of it at a moment."""

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return forms_of(KEYS_TWICE, "PARTED", {"flat": "", "parted": ", partition_by='p'"})

    @staticmethod
    def said(rows: str) -> list[str]:
        _, log = run_dbt_and_capture(["snapshot", "--vars", f'{{rows: "{rows}"}}'])
        return [line for line in log.splitlines() if "the snapshot's unique_key" in line]

    def test_each_snapshot_says_so(self, project: Any) -> None:
        assert self.said("'once'") == []
        said = self.said("'once', 'twice'")
        assert len(said) == 2, said
        assert all("left out" in line and "precombine_field" not in line for line in said)
        assert self.said("'once'") == []


GONE_IN_ANOTHER_CASE = """
{% snapshot NAME %}
{{ config(strategy='check', check_cols='all', unique_key=KEY, hard_deletes='new_record', target_schema=target.schema) }}
{% if var('first') %} select * from values (1, 'a', 10), (2, 'b', 20) as t (id, Val, n)
{% else %} select 1 as `ID`, 'a' as vaL, 10 as n {% endif %}
{% endsnapshot %}
"""


class TestRowsGoneInAnotherCase:
    """What is noted of a row that is gone are its stored values, however the query spells its columns by now."""

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return forms_of(GONE_IN_ANOTHER_CASE, "KEY", {"gone": "'id'", "gone_of_two": "['Id', 'n']"})

    def test_a_deletion_record_has_its_values(self, project: Any) -> None:
        for first in ("true", "false", "false"):
            run_dbt(["snapshot", "--vars", f"{{first: {first}}}"])
        for snapshot in ("gone", "gone_of_two"):
            query = f"select id, val, n, dbt_valid_to is null, dbt_is_deleted from {{schema}}.{snapshot}"
            assert sorted(map(tuple, project.run_sql(query, fetch="all"))) == [
                (1, "a", 10, True, "False"),
                (2, "b", 20, False, "False"),
                (2, "b", 20, True, "True"),
            ]


IN_ANOTHER_CASE = """
{% snapshot NAME %}
{{ config(strategy='check', check_cols=COLUMNS, unique_key='ID', target_schema=target.schema) }}
select 1 as id, {{ var('value') }} as {{ var('name') }}, 'x' as other
{% endsnapshot %}
"""


class TestNamesInAnotherCase:
    """Upper and lower case make no difference in names: a row that is the same gets no version at every run."""

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return forms_of(IN_ANOTHER_CASE, "COLUMNS", {"named": "['VAL']", "whole": "'all'"})

    def test_only_another_value_makes_a_version(self, project: Any) -> None:
        runs = [("val", 1), ("val", 1), ("Val", 1), ("VAL", 2), ("val", 2), ("vaL", 2)]
        for name, value in runs:
            run_dbt(["snapshot", "--vars", f"{{name: {name}, value: {value}}}"])
        for snapshot in ("named", "whole"):
            query = f"select val, dbt_valid_to is null from {{schema}}.{snapshot}"
            assert sorted(map(tuple, project.run_sql(query, fetch="all"))) == [(1, False), (2, True)]


OWN_HELPERS = """
{% snapshot helped %}
{{ config(strategy='check', check_cols='all', unique_key='id', target_schema=target.schema) }}
select 1 as id, {{ var('value') }} as dbt_change_type_of_mine, 'k' as dbt_unique_key_text
{% endsnapshot %}
"""


class TestColumnsNamedLikeDbtsOwn:
    """Columns whose names begin as those of dbt's staging are columns of the source."""

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"helped.sql": OWN_HELPERS}

    def test_they_are_kept(self, project: Any) -> None:
        for value in (1, 2):
            run_dbt(["snapshot", "--vars", f"{{value: {value}}}"])
        query = "select dbt_change_type_of_mine, dbt_unique_key_text from {schema}.helped"
        assert sorted(map(tuple, project.run_sql(query, fetch="all"))) == [(1, "k"), (2, "k")]


GROWING = """
{% snapshot NAME %}{{ config(unique_key='id', updated_at='ts', SAID) }}
select * from {{ ref('source') }}
{% endsnapshot %}
"""
GROWING_FORMS = {
    "by_time": "strategy='timestamp', hard_deletes='new_record'",
    "by_all": "strategy='check', check_cols='all', hard_deletes='invalidate'",
    "by_one": "strategy='check', check_cols=['v'], hard_deletes='new_record'",
    "by_all_in_logs": "strategy='check', check_cols='all', hard_deletes='new_record', table_type='mor'",
}
WAVES = (
    "select 1 as id, timestamp_seconds(1) as ts, cast(5 as int) as v, named_struct('p', 1) as s union all select 2, timestamp_seconds(1), 6, named_struct('p', 2)",
    "select 1 as id, timestamp_seconds(2) as ts, cast(3000000000 as bigint) as v, named_struct('p', 1, 'q', 'x') as s",
    "select 1 as id, timestamp_seconds(2) as ts, cast(3000000000 as bigint) as v, named_struct('p', 1, 'q', 'x') as s "
    "union all select 2, timestamp_seconds(3), 7, named_struct('p', 3, 'q', 'y')",
)
HISTORY = [
    (1, 1, 5, 1, None),
    (1, 2, 3_000_000_000, 1, "x"),
    (2, 1, 6, 2, None),
    (2, 3, 7, 3, "y"),
]


def taken(project: Any, name: str, sql: str) -> None:
    """Write a snapshot's file and take it."""
    write_file(sql, project.project_root, "snapshots", f"{name}.sql")
    run_dbt(["snapshot", "-s", name])


class TestSnapshotOfAQueryWhoseTypesGrow:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        waves = "".join(
            f"{{% if var('wave', 0) == {n} %}} {sql} {{% endif %}}" for n, sql in enumerate(WAVES)
        )
        return {"source.sql": "{{ config(materialized='view') }} " + waves}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {
            f"{n}.sql": GROWING.replace("NAME", n).replace("SAID", said) for n, said in GROWING_FORMS.items()
        }

    def test_its_columns_take_wider_types_and_further_fields(self, project: Any) -> None:
        for wave in range(len(WAVES)):
            run_dbt(["build", "--vars", f"{{wave: {wave}}}"])
        for name, said in GROWING_FORMS.items():
            of_source = "where dbt_is_deleted = 'False'" if "new_record" in said else ""
            rows = project.run_sql(
                f"select distinct id, unix_seconds(ts) as ts, v, s.p, s.q from {{schema}}.{name} {of_source} order by id, ts",
                fetch="all",
            )
            assert [tuple(row) for row in rows] == HISTORY, name
            types = {row[0]: row[1] for row in project.run_sql(f"describe {{schema}}.{name}", fetch="all")}
            assert (types["v"], types["s"]) == ("bigint", "struct<p:int,q:string>"), name
            ends = project.run_sql(
                f"select count(*) from {{schema}}.{name} where dbt_valid_to is null", fetch="all"
            )
            assert ends == [(2,)], name

    def test_a_field_that_is_lost_is_named(self, project: Any) -> None:
        run_dbt(["run", "--vars", "{wave: 0}"])
        results = run_dbt(["snapshot", "-s", *GROWING_FORMS, "--vars", "{wave: 0}"], expect_pass=False)
        assert len(results) == len(GROWING_FORMS)
        assert all("s lacks the field 'q', which the table has" in result.message for result in results), (
            results
        )

    @pytest.mark.long
    def test_a_value_that_the_column_cannot_hold_is_told_with_what_helps_a_snapshot(
        self, project: Any
    ) -> None:
        sql = "{% snapshot narrowed %}{{ config(unique_key='id', strategy='check', check_cols=['ts']) }} SQL {% endsnapshot %}"
        select = "select 1 as id, timestamp_seconds(9) as ts, {{ var('value', 1) }} as v"
        taken(project, "narrowed", sql.replace("SQL", select))
        write_file(
            sql.replace("SQL", select.replace("9", "8")), project.project_root, "snapshots", "narrowed.sql"
        )
        for value, told in (
            ("'x'", "value x of column v does not fit its type int, and"),
            ("date'2026-01-01'", "column v is date in the query and int in the table"),
            ("named_struct('p', 1)", "v is struct<p:int> in the query and int in the table"),
        ):
            command = ["snapshot", "-s", "narrowed", "--vars", f'{{value: "{value}"}}']
            (result,) = run_dbt(command, expect_pass=False)
            assert told in result.message
            assert "struct" in told or "cast it in the snapshot's query" in result.message

    @pytest.mark.long
    def test_a_type_that_would_round_what_is_there_is_not_taken(self, project: Any) -> None:
        sql = "{% snapshot exact %}{{ config(unique_key='id', strategy='check', check_cols=['v']) }} SQL {% endsnapshot %}"
        for value in ("9007199254740993L", "cast(7 as double)", "cast(8 as float)", "9"):
            taken(project, "exact", sql.replace("SQL", f"select 1 as id, {value} as v"))
        rows = project.run_sql("select v, typeof(v) from {schema}.exact order by dbt_valid_from", fetch="all")
        assert [tuple(row) for row in rows] == [(each, "bigint") for each in (9_007_199_254_740_993, 7, 8, 9)]

    def test_dbts_own_columns_follow_the_one_whose_values_they_have(self, project: Any) -> None:
        sql = "{% snapshot counted %}{{ config(unique_key='id', strategy='timestamp', updated_at='At') }} SQL {% endsnapshot %}"
        for at in ("cast(1 as int)", "5000000000L"):
            taken(project, "counted", sql.replace("SQL", f"select 1 as id, {at} as at"))
        rows = project.run_sql(
            "select at, dbt_valid_from, dbt_valid_to from {schema}.counted order by at", fetch="all"
        )
        assert [tuple(row) for row in rows] == [(1, 1, 5_000_000_000), (5_000_000_000, 5_000_000_000, None)]


BY_ALL = "strategy='check', check_cols='all'"
CAST = {
    "cut": (BY_ALL, "5L", "5.5D", [(5, True)]),
    "ordered": (
        BY_ALL,
        "named_struct('p', 1, 'q', 'x')",
        "named_struct('q', 'x', 'p', 1)",
        [({"p": 1, "q": "x"}, True)],
    ),
    "texts": (BY_ALL, "'5'", "5", [("5", True)]),
    "days": (
        "strategy='timestamp', updated_at='v'",
        "date'2026-01-01'",
        "timestamp'2026-01-02 10:00:00'",
        [(date(2026, 1, 1), False), (date(2026, 1, 2), True)],
    ),
}


class TestSnapshotOfAQueryWhoseTypesAreOthers:
    """Rows are compared in the types of the snapshot: one that is as it was gets no version, and each key keeps its current row."""

    @pytest.mark.parametrize("hard_deletes", ["ignore", "new_record"])
    def test_a_row_that_is_the_same_once_cast_gets_no_version(self, project: Any, hard_deletes: str) -> None:
        for form, (strategy, before, after, rows) in CAST.items():
            name = f"{form}_{hard_deletes}"
            sql = (
                f"{{% snapshot {name} %}}{{{{ config(unique_key='id', {strategy}, hard_deletes='{hard_deletes}') }}}} "
                "select 1 as id, VALUE as v {% endsnapshot %}"
            )
            for value in (before, after, after, after):
                taken(project, name, sql.replace("VALUE", value))
            found = project.run_sql(
                f"select v, dbt_valid_to is null from {{schema}}.{name} order by dbt_valid_from", fetch="all"
            )
            assert [tuple(row) for row in found] == rows, name

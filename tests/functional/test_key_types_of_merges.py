"""MERGE from a source whose keys become other values while they are stored: by the table's types, or by the text of a key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import DbtBaseException
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage import open_storage

from tests.helpers.hudi_rs import rows_by_hudi_rs

pytestmark = pytest.mark.sampled

BOTH = "when matched then update set * when not matched then insert *"
BUCKETS = ", type 'mor', 'hoodie.index.type' 'BUCKET', 'hoodie.bucket.index.num.buckets' '2'"
CONSISTENT = ", 'hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled' 'true'"
MICROS = "timestamp'2024-01-01 10:00:00.%s'"


def rows(project: Any, name: str) -> list[tuple[object, ...]]:
    """The rows with their record keys; a key that is stored twice is there twice."""
    path = str(project.project_root / "warehouse" / project.test_schema / name)
    return rows_by_hudi_rs(path, ["_hoodie_record_key", "v"])


class TestOtherTypes:
    """What = compares is the source's value, and what is stored is that in the table's type."""

    DAY, TIME = "date'2024-01-01'", "timestamp'2024-01-01 10:00:00'"
    TABLES = {
        "cow": ("k date", "primaryKey 'id,k'", DAY, TIME, "date"),
        "bucket": ("k date", f"primaryKey 'id,k'{BUCKETS}", DAY, TIME, "date"),
        "partition": ("k date", "primaryKey 'id', 'hoodie.index.type' 'SIMPLE') partitioned by (k", DAY, TIME, "date"),
        "int": ("k int", "primaryKey 'k', type 'mor'", "1", "cast(1.5 as double)", "int"),
        "decimal": ("k decimal(5,1)", "primaryKey 'k'", "1.3", "1.25", "decimal(5,1)"),
        "float": ("k float", "primaryKey 'k'", "cast(0.1 as float)", "cast(0.1 as double)", "float"),
    }  # fmt: skip

    @pytest.mark.core
    @pytest.mark.parametrize("kind", TABLES)
    def test_a_row_that_would_get_a_stored_key_is_refused_and_one_cast_as_it_is_stored_is_matched(
        self, project: Any, kind: str
    ) -> None:
        column, options, stored, given, kept = self.TABLES[kind]
        name = f"typed_{kind}"
        project.run_sql(
            f"create table {{schema}}.{name} (id int, {column}, v string) using hudi options ({options})"
        )
        project.run_sql(f"insert into {{schema}}.{name} values (1, {stored}, 'x')")
        before = rows(project, name)
        into = (
            f"merge into {{schema}}.{name} t using (select 1 id, %s k, 'y' v) s on t.id = s.id and t.k = s.k"
        )
        if "id" not in options:
            into = into.replace("t.id = s.id and ", "")
        with pytest.raises(
            DbtBaseException, match="stored and not matched.*k in ON.*cast to the table's types"
        ):
            project.run_sql(f"{into % given} {BOTH}")
        assert rows(project, name) == before
        project.run_sql(f"{into % f'cast({given} as {kept})'} {BOTH}")
        assert rows(project, name) == [(before[0][0], "y")]

    def test_a_source_with_wider_or_narrower_whole_numbers_is_merged_as_ever(self, project: Any) -> None:
        project.run_sql(
            "create table {schema}.whole (k bigint, v string) using hudi options (primaryKey 'k')"
        )
        project.run_sql("insert into {schema}.whole values (1, 'x')")
        project.run_sql(
            "merge into {schema}.whole t using (select 1 k, 'y' v union all select 2, 'y') s on t.k = s.k "
            + BOTH
        )
        assert rows(project, "whole") == [("1", "y"), ("2", "y")]


class TestTimesOfOneMillisecond:
    """Where keys have times by the millisecond, two times of one millisecond are one key."""

    def merge(self, project: Any, name: str, micros: str, on: str, clauses: str = BOTH) -> None:
        source = f"select 1 id, {MICROS % micros} at, '{micros}' v"
        project.run_sql(f"merge into {{schema}}.{name} t using ({source}) s on {on} {clauses}")

    @pytest.mark.core
    @pytest.mark.parametrize(("kind", "key"), [("cow", "id,at"), ("mor", "at"), ("mor", "id")])
    def test_a_time_of_a_stored_millisecond_is_refused_as_new_and_matched_by_the_millisecond(
        self, project: Any, kind: str, key: str
    ) -> None:
        name = f"times_{kind}_{key.replace(',', '_')}"
        placed = ", 'hoodie.index.type' 'SIMPLE') partitioned by (at" if key == "id" else ""
        project.run_sql(
            f"create table {{schema}}.{name} (id int, at timestamp, v string) using hudi options (primaryKey '{key}', "
            f"type '{kind}'{CONSISTENT}{placed})"
        )
        project.run_sql(f"insert into {{schema}}.{name} values (1, {MICROS % '123100'}, 'x')")
        before = rows(project, name)
        with pytest.raises(DbtBaseException, match="stored and not matched.*the millisecond"):
            self.merge(project, name, "123900", "t.id = s.id and t.at = s.at")
        assert rows(project, name) == before
        self.merge(project, name, "123900", "t.id = s.id and unix_millis(t.at) = unix_millis(s.at)")
        assert rows(project, name) == [(before[0][0], "123900")]
        self.merge(project, name, "124000", "t.id = s.id and t.at = s.at")
        assert [value for _, value in rows(project, name)] == ["123900", "124000"]

    def test_two_times_of_a_millisecond_do_not_both_change_its_row(self, project: Any) -> None:
        project.run_sql(
            "create table {schema}.both (id int, at timestamp, v string) using hudi options (primaryKey 'id,at'"
            + CONSISTENT
            + ")"
        )
        project.run_sql(f"insert into {{schema}}.both values (1, {MICROS % '123100'}, 'x')")
        two = " union all ".join(
            f"select 1 id, {MICROS % each} at, '{each}' v" for each in ("123100", "123900")
        )
        with pytest.raises(DbtBaseException, match="is matched by several rows of the source"):
            project.run_sql(f"merge into {{schema}}.both t using ({two}) s on t.id = s.id {BOTH}")

    def test_times_before_1970_are_cut_as_in_their_keys(self, project: Any) -> None:
        project.run_sql(
            "create table {schema}.early (id int, at timestamp, v string) using hudi options (primaryKey 'id,at'"
            + CONSISTENT
            + ")"
        )
        early = "timestamp'1969-12-31 23:59:59.%s'"
        project.run_sql(f"insert into {{schema}}.early values (1, {early % '999500'}, 'x')")
        source = (
            "merge into {schema}.early t using (select 1 id, %s at, 'y' v) s on t.id = s.id and t.at = s.at "
            + BOTH
        )
        with pytest.raises(DbtBaseException, match="stored and not matched"):
            project.run_sql(source % "timestamp'1970-01-01 00:00:00.000500'")
        project.run_sql(source % (early % "998500"))
        assert len(rows(project, "early")) == 2

    def test_a_table_whose_times_are_milliseconds_keeps_one_row_for_each(self, project: Any) -> None:
        project.run_sql(
            "create table {schema}.millis (at timestamp, v string) using hudi options (primaryKey 'at')"
        )
        base = Path(project.project_root) / "warehouse" / project.test_schema / "millis"
        TableConfig.from_properties(
            {
                key: value.replace("timestamp-micros", "timestamp-millis")
                for key, value in TableConfig.load(open_storage(str(base))).properties.items()
            }
        ).save(open_storage(str(base)))
        into = f"merge into {{schema}}.millis t using (select {MICROS} at, '%s' v) s on t.at = s.at {BOTH}"
        project.run_sql(into % ("123100", "x"))
        with pytest.raises(DbtBaseException, match="stored and not matched.*the millisecond"):
            project.run_sql(into % ("123900", "y"))
        assert rows(project, "millis") == [("1704103200123", "x")]

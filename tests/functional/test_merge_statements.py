"""Whole MERGE statements, chosen at random, against a model of what SQL says of them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from dbt_common.exceptions import DbtBaseException

from tests.helpers.forms import in_turn
from tests.helpers.hudi_rs import rows_by_hudi_rs

pytestmark = pytest.mark.sampled

Row = tuple[int, str, Any, Any]
COLUMNS = ["id", "p", "n", "v"]
TABLES = {
    "cow": "options (primaryKey 'id')",
    "mor-partitioned": "options (primaryKey 'id', type 'mor') partitioned by (p)",
    "cow-partitioned": "options (primaryKey 'id', 'hoodie.index.type' 'SIMPLE') partitioned by (p)",
    "mor": "options (primaryKey 'id', type 'mor')",
}
ON = [
    ("t.id = s.id and t.p = s.p", lambda t, s: t[:2] == s[:2]),
    ("s.p = t.p and t.id = s.id and t.n < 5", lambda t, s: t[:2] == s[:2] and less(t[2], 5)),
    ("t.id = s.id", lambda t, s: t[0] == s[0]),
    ("t.v = s.v", lambda t, s: t[3] is not None and t[3] == s[3]),
]
MATCHED = [
    ("", lambda t, s: True),
    (" and s.n > t.n", lambda t, s: less(t[2], s[2])),
    (" and s.v is null", lambda t, s: s[3] is None),
    (" and not (t.v > 'x')", lambda t, s: t[3] is not None and t[3] <= "x"),
]
UPDATES = [
    ("update set *", lambda t, s: s),
    ("update set v = s.v", lambda t, s: (*t[:3], s[3])),
    ("update set t.v = concat(t.v, '!'), n = s.n + t.n", lambda t, s: (*t[:2], plus(t[2], s[2]), said(t[3]))),
    ("delete", None),
]
UNMATCHED = [
    ("", lambda s: True),
    (" and s.id % 2 = 1", lambda s: s[0] % 2 == 1),
    (" and s.n >= 3", lambda s: s[2] is not None and s[2] >= 3),
]
INSERTS = [
    ("insert *", lambda s: s),
    ("insert (p, id) values (s.p, s.id)", lambda s: (*s[:2], None, None)),
    ("insert (v, n, p, id) values (upper(s.v), s.n * 2, s.p, s.id + 100)", lambda s: (s[0] + 100, s[1], plus(s[2], s[2]), s[3] and s[3].upper())),
]  # fmt: skip
LEFT = [
    ("", lambda t: True),
    (" and t.n < 4", lambda t: less(t[2], 4)),
    (" and t.p = 'a'", lambda t: t[1] == "a"),
]
ENDS = [
    ("update set v = 'gone'", lambda t: (*t[:3], "gone")),
    ("update set n = t.n + 1, v = null", lambda t: (*t[:2], plus(t[2], 1), None)),
    ("delete", None),
]


def less(one: Any, other: Any) -> bool:
    return one is not None and other is not None and bool(one < other)


def plus(one: Any, other: Any) -> Any:
    return None if one is None or other is None else one + other


def said(text: str | None) -> str | None:
    return None if text is None else text + "!"


GATE = (1, 3, 6, 7)
LONG = [pytest.param(table, seed, marks=pytest.mark.long) for seed in range(100, 115) for table in TABLES]


class Refused(Exception):
    """What a keyed table cannot express."""


@dataclass
class Merge:
    """One statement: conditions and actions, each as SQL and as a function."""

    on: tuple[str, Callable[[Row, Row], bool]]
    matched: list[tuple[Any, Any]]
    unmatched: list[tuple[Any, Any]]
    left: list[tuple[Any, Any]]

    @classmethod
    def at_random(cls, chance: random.Random) -> Merge:
        def some(conditions: list[Any], actions: list[Any], most: int) -> list[tuple[Any, Any]]:
            count = chance.randrange(most + 1)
            # only the last clause of a kind may have no condition
            first = [(chance.choice(conditions[1:]), chance.choice(actions)) for _ in range(count - 1)]
            return [*first, (chance.choice(conditions), chance.choice(actions))] if count else []

        on = chance.choices(ON, [6, 2, 1, 1])[0]
        found = cls(on, some(MATCHED, UPDATES, 3), some(UNMATCHED, INSERTS, 2), some(LEFT, ENDS, 2))
        return found if found.matched or found.unmatched or found.left else cls.at_random(chance)

    def sql(self, table: str, source: list[Row]) -> str:
        clauses = [
            *(f"when matched{where[0]} then {action[0]}" for where, action in self.matched),
            *(f"when not matched{where[0]} then {action[0]}" for where, action in self.unmatched),
            *(f"when not matched by source{where[0]} then {action[0]}" for where, action in self.left),
        ]
        values = f"(select id, p, cast(n as int) n, cast(v as string) v from values {sql_rows(source)} as q(id, p, n, v))"
        return f"merge into {table} t using {values} s on {self.on[0]} {' '.join(clauses)}"

    def result(self, stored: list[Row], source: list[Row], *, by_partition: bool) -> list[Row]:
        """Return the table afterwards; raises Refused for what the keys of the table, or of each partition, forbid."""
        key = (lambda row: row[:2]) if by_partition else (lambda row: row[0])
        rows: list[Row] = []
        refused: set[str] = set()
        matches = {row: [each for each in source if self.on[1](row, each)] for row in stored}
        for row, found in matches.items():
            actions = [(action[1], each) for each in found for action in first(self.matched, row, each)]
            if not found:
                actions = [
                    (action[1] and (lambda t, _, do=action[1]: do(t)), row)
                    for action in first(self.left, row)
                ]
            if len(actions) > 1 and any(do for do, _ in actions):
                refused.add("several rows")
            made = [do(row, each) if do else None for do, each in actions]
            if any(new is not None and key(new) != key(row) for new in made):
                refused.add("changes")
            new = made[0] if made else None
            rows += [new] if new is not None else [] if actions else [row]
        if refused:
            # what is wrong in two ways is refused for either
            raise Refused("|".join(sorted(refused)))
        lonely = [each for each in source if not any(each in found for found in matches.values())]
        # of several with one key the last, as these tables have no precombine_field
        added = {
            key(row): row
            for each in lonely
            for row in (action[1](each) for action in first(self.unmatched, each))
        }
        if added.keys() & {key(row) for row in stored}:
            raise Refused("not matched")
        return sorted([*rows, *added.values()], key=str)


def first(clauses: list[tuple[Any, Any]], *rows: Row) -> list[Any]:
    return [action for where, action in clauses if where[1](*rows)][:1]


def literal(value: Any) -> str:
    return "null" if value is None else repr(value)


def some_rows(chance: random.Random, ids: range, count: int) -> list[Row]:
    return [
        (each, chance.choice("ab"), chance.choice([1, 3, 5, None]), chance.choice(["x", "y", "z", None]))
        for each in chance.sample(ids, count)
    ]


class TestMerge:
    def rows(self, project: Any, name: str) -> list[Row]:
        path = str(project.project_root / "warehouse" / project.test_schema / name)
        found = sorted(rows_by_hudi_rs(path, COLUMNS), key=str)
        by_spark = project.run_sql(f"select id, p, n, v from {{schema}}.{name}", fetch="all")
        assert sorted(map(tuple, by_spark), key=str) == found
        return found  # type: ignore[return-value]

    def run(self, project: Any, name: str, options: str, chance: random.Random) -> bool:
        """Run one statement on new rows; returns whether it was one that the table can express."""
        stored, source = some_rows(chance, range(20), 12), some_rows(chance, range(30), 12)
        if chance.random() < 0.2:
            source.append((*source[0][:2], 7, "twice"))
        project.run_sql(
            f"insert overwrite {{schema}}.{name} select id, cast(n as int) n, cast(v as string) v, p "
            f"from values {sql_rows(stored)} as q(id, p, n, v)"
        )
        project.run_sql(
            f"update {{schema}}.{name} set v = v where id < 9"
        )  # a merge-on-read table has logs then
        merge = Merge.at_random(chance)
        statement = merge.sql(f"{{schema}}.{name}", source)
        try:
            expected = merge.result(stored, source, by_partition="SIMPLE" in options)
        except Refused as reason:
            with pytest.raises(DbtBaseException, match=str(reason)):
                project.run_sql(statement)
            assert self.rows(project, name) == sorted(stored, key=str), statement
            return False
        before = self.commits(project, name)
        project.run_sql(statement)
        assert self.rows(project, name) == expected, (statement, stored, source)
        assert self.commits(project, name) - before <= 1
        return True

    def commits(self, project: Any, name: str) -> int:
        path = project.project_root / "warehouse" / project.test_schema / name / ".hoodie"
        return len([each for each in path.listdir() if each.ext in (".commit", ".deltacommit")])

    @pytest.mark.core
    @pytest.mark.parametrize(("table", "seed"), [*in_turn(tuple(TABLES), GATE), *LONG])
    def test_rows_are_those_that_sql_says_in_one_commit(self, project: Any, table: str, seed: int) -> None:
        name = table.replace("-", "_")
        project.run_sql(f"drop table if exists {{schema}}.{name}")
        project.run_sql(
            f"create table {{schema}}.{name} (id int, n int, v string, p string) using hudi {TABLES[table]}"
        )
        chance = random.Random(seed)
        for _ in range(20):
            if self.run(project, name, TABLES[table], chance):
                break


class TestUpserts:
    """A MERGE that updates and inserts whole rows by the key is written as an upsert, without joining the table's rows."""

    TABLES = {
        "cow": "options (primaryKey 'id', preCombineField 'n')",
        "mor": "options (primaryKey 'id', type 'mor')",
        "partitioned": "options (primaryKey 'id', preCombineField 'n', type 'mor') partitioned by (p)",
        "texts": "options (primaryKey 'v,id')",
    }
    # what is no upsert, or is refused: nulls and texts for null in a key, a key twice, no order, a source without rows
    SOURCES = [
        [(1, "a", 1, "x"), (2, "a", 9, "y"), (3, "b", 1, "z"), (70, "c", 1, None)],
        [(1, "a", 0, "x"), (71, "b", None, "x"), (72, "b", 4, "")],
        [(5, "b", 3, "x"), (5, "b", 3, "x")],
        [(80, "a", 1, "u"), (80, "a", 2, "u")],
    ]

    @pytest.mark.core
    @pytest.mark.parametrize("table", TABLES)
    def test_rows_are_those_of_the_same_merge_that_joins_them(self, project: Any, table: str) -> None:
        on = {"partitioned": "t.id = s.id and t.p = s.p", "texts": "t.v = s.v and s.id = t.id"}.get(
            table, "t.id = s.id"
        )
        stored = [(number, "ab"[number % 2], number % 4, "xyz"[number % 3]) for number in range(12)]
        found: list[list[Any]] = [[], []]
        for number, more in enumerate(("", " and true")):
            name = f"twin_{table}_{number}"
            project.run_sql(f"drop table if exists {{schema}}.{name}")
            project.run_sql(
                f"create table {{schema}}.{name} (id int, n int, v string, p string) using hudi {self.TABLES[table]}"
            )
            project.run_sql(f"insert into {{schema}}.{name} (id, p, n, v) values {sql_rows(stored)}")
            path = str(project.project_root / "warehouse" / project.test_schema / name)
            for source in self.SOURCES:
                values = f"(select id, p, cast(n as int) n, cast(v as string) v from values {sql_rows(source)} as q(id, p, n, v))"
                try:
                    project.run_sql(
                        f"merge into {{schema}}.{name} t using {values} s on {on}{more} "
                        "when matched then update set * when not matched then insert *"
                    )
                except DbtBaseException as error:
                    found[number].append(re.sub(r"twin_\w+", "", str(error)))
                found[number].append(sorted(rows_by_hudi_rs(path, COLUMNS), key=repr))
        assert found[0] == found[1]
        assert len({repr(each) for each in found[0]}) > 2


def sql_rows(rows: list[Row]) -> str:
    return ", ".join(f"({i}, '{p}', {literal(n)}, {literal(v)})" for i, p, n, v in rows)


class TestSides:
    """Which side's columns a clause may name."""

    # Clauses of a MERGE into t by s, and what is said of them.
    REFUSED = [
        (f"when {clause}", f"MERGE INTO .* cannot be resolved: .*{reason}.*WHEN NOT MATCHED may name")
        for clause, reason in (
            ("not matched by source then update set n = s.n", "`s`.`n`"),
            ("not matched by source and s.id is null then delete", "`s`.`id`"),
            ("not matched and t.id is null then insert (id) values (s.id)", "`t`.`id`"),
            ("not matched then insert (id, v) values (s.id, t.v)", "`t`.`v`"),
            ("matched and n > 1 then delete", "AMBIGUOUS"),
            ("matched and t.nope > 1 then delete", "`t`.`nope`"),
        )
    ]  # fmt: skip

    def made(self, project: Any, kind: str) -> str:
        name = f"sides_{kind}"
        project.run_sql(f"drop table if exists {{schema}}.{name}")
        project.run_sql(
            f"create table {{schema}}.{name} (id int, n int, v string) using hudi options (primaryKey 'id', type '{kind}')"
        )
        project.run_sql(f"insert into {{schema}}.{name} values (1, 1, 'a'), (2, 2, 'b')")
        return name

    def rows(self, project: Any, name: str) -> list[tuple[Any, ...]]:
        path = str(project.project_root / "warehouse" / project.test_schema / name)
        return sorted(rows_by_hudi_rs(path, ["id", "n", "v"]))

    @pytest.mark.core
    @pytest.mark.parametrize("kind", ["cow", "mor"])
    def test_a_clause_that_names_the_side_its_rows_do_not_have_is_refused_and_nothing_is_written(
        self, project: Any, kind: str
    ) -> None:
        name = self.made(project, kind)
        for clause, reason in self.REFUSED:
            with pytest.raises(DbtBaseException, match=reason) as raised:
                project.run_sql(
                    f"merge into {{schema}}.{name} t using (select 77 id, 1 n) s on t.id = s.id {clause}"
                )
            assert "__hudi" not in str(raised.value)
            assert self.rows(project, name) == [(1, 1, "a"), (2, 2, "b")], clause

    @pytest.mark.core
    @pytest.mark.parametrize("kind", ["cow", "mor"])
    def test_names_without_a_qualifier_are_those_of_the_side_that_a_row_has(
        self, project: Any, kind: str
    ) -> None:
        name = self.made(project, kind)
        project.run_sql(
            f"merge into {{schema}}.{name} t using (select 1 id, 10 n, 'A' v union all select 7, 70, 'g' union all "
            "select 8, 5, 'h') s on t.id = s.id when matched then update set n = s.n + t.n "
            "when not matched and n > 5 then insert (id, n, v) values (id, n + 1, upper(v)) "
            "when not matched by source and n > 1 then update set n = n + 1, v = concat(v, t.v)"
        )
        assert self.rows(project, name) == [(1, 11, "a"), (2, 3, "bb"), (7, 71, "G")]

    def test_a_query_without_a_name_is_refused(self, project: Any) -> None:
        name = self.made(project, "cow")
        for source in ("select 7 id, 1 n, 'z' v", "values (7, 1, 'z')"):
            with pytest.raises(
                DbtBaseException, match="query behind USING has no name.*USING .select .... AS s"
            ):
                project.run_sql(
                    f"merge into {{schema}}.{name} t using ({source}) on t.id = 7 when not matched then insert *"
                )
        assert self.rows(project, name) == [(1, 1, "a"), (2, 2, "b")]

    def test_a_source_that_is_a_table_without_an_alias_is_known_by_its_name(self, project: Any) -> None:
        name = self.made(project, "cow")
        project.run_sql(
            "create table {schema}.came using hudi options (primaryKey 'id') as select 1 id, 9 n, 'z' v"
        )
        project.run_sql("insert into {schema}.came values (5, 50, 'e')")
        project.run_sql(
            f"merge into {{schema}}.{name} t using {{schema}}.came on t.id = came.id when matched then update set * "
            "when not matched and came.n > 5 and {schema}.came.v = 'e' then insert * when not matched by source then delete"
        )
        assert self.rows(project, name) == [(1, 9, "z"), (5, 50, "e")]


class TestTypesOfClauses:
    """What one clause sets does not change the type, and so the value, of what others set or leave."""

    def rows(self, project: Any, name: str, columns: list[str]) -> list[Any]:
        path = str(project.project_root / "warehouse" / project.test_schema / name)
        return sorted(rows_by_hudi_rs(path, columns))

    def made(self, project: Any, kind: str, columns: str, rows: str) -> str:
        name = f"typed_{kind}"
        project.run_sql(f"drop table if exists {{schema}}.{name}")
        project.run_sql(
            f"create table {{schema}}.{name} ({columns}) using hudi options (primaryKey 'id', type '{kind}')"
        )
        project.run_sql(f"insert into {{schema}}.{name} values {rows}")
        return name

    @pytest.mark.core
    @pytest.mark.parametrize("kind", ["cow", "mor"])
    def test_a_key_of_digits_stays_as_it_is_stored_beside_numbers_that_are_inserted(
        self, project: Any, kind: str
    ) -> None:
        name = self.made(project, kind, "id string, v string", "('007', 'a')")
        project.run_sql(
            f"merge into {{schema}}.{name} t using (select 7 id, 'b' v union all select 8, 'c') s on t.id = s.id "
            "when matched then update set v = s.v when not matched then insert *"
        )
        assert self.rows(project, name, ["id", "v"]) == [("007", "b"), ("8", "c")]
        with pytest.raises(DbtBaseException, match="changes id, by which a stored row is found"):
            project.run_sql(
                f"merge into {{schema}}.{name} t using (select 7 id, 'd' v) s on t.id = s.id when matched then update set *"
            )
        assert self.rows(project, name, ["id", "v"]) == [("007", "b"), ("8", "c")]

    def test_a_large_number_and_a_text_stay_beside_other_types_of_other_clauses(self, project: Any) -> None:
        name = self.made(
            project, "cow", "id int, n bigint, code string", "(1, 10, 'a'), (2, 9007199254740993, '007')"
        )
        project.run_sql(
            f"merge into {{schema}}.{name} t using (select id, '008' code from values (1), (2), (3) as v(id)) s on t.id = s.id "
            "when matched and s.id = 1 then update set n = t.n / 2, code = 5 when matched then update set code = t.code "
            "when not matched then insert (id, n, code) values (s.id, 9007199254740995, s.code)"
        )
        assert self.rows(project, name, ["id", "n", "code"]) == [
            (1, 5, "5"),
            (2, 9007199254740993, "007"),
            (3, 9007199254740995, "008"),
        ]

    def test_a_value_that_does_not_fit_its_column_is_refused(self, project: Any) -> None:
        name = self.made(project, "cow", "id int, n int, d date", "(1, 10, date'2026-01-01')")
        for value, reason in (
            ("n = 'x'", "value x of column n does not fit its type int"),
            ("n = t.d", "column n is date in the query and int in the table"),
        ):
            with pytest.raises(Exception, match=reason):
                project.run_sql(
                    f"merge into {{schema}}.{name} t using (select 1 id) s on t.id = s.id when matched then update set {value}"
                )
        assert self.rows(project, name, ["id", "n"]) == [(1, 10)]

"""Whole MERGE statements, chosen at random, against a model of what SQL says of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from dbt_common.exceptions import DbtBaseException

from tests.helpers.forms import in_turn
from tests.helpers.hudi_rs import rows_by_hudi_rs

Row = tuple[int, str, Any, Any]
COLUMNS = ["id", "p", "n", "v"]
TABLES = {
    "cow": "options (primaryKey 'id')",
    "mor-partitioned": "options (primaryKey 'id', type 'mor') partitioned by (p)",
    "cow-partitioned": "options (primaryKey 'id') partitioned by (p)",
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

    def result(self, stored: list[Row], source: list[Row], *, partitioned: bool) -> list[Row]:
        """Return the table afterwards; raises Refused for what the keys of the table forbid."""
        key = (lambda row: row[:2]) if partitioned else (lambda row: row[0])
        rows: list[Row] = []
        matches = {row: [each for each in source if self.on[1](row, each)] for row in stored}
        for row, found in matches.items():
            actions = [(action[1], each) for each in found for action in first(self.matched, row, each)]
            if not found:
                actions = [
                    (action[1] and (lambda t, _, do=action[1]: do(t)), row)
                    for action in first(self.left, row)
                ]
            if len(actions) > 1 and any(do for do, _ in actions):
                raise Refused("several rows")
            new = actions[0][0](row, actions[0][1]) if actions and actions[0][0] else None
            if new is not None and key(new) != key(row):
                raise Refused("changes")
            rows += [new] if new is not None else [] if actions else [row]
        lonely = [each for each in source if not any(each in found for found in matches.values())]
        added = [action[1](each) for each in lonely for action in first(self.unmatched, each)]
        if {key(row) for row in added} & {key(row) for row in stored}:
            raise Refused("not matched")
        return sorted([*rows, *added], key=str)


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

    def run(self, project: Any, name: str, chance: random.Random) -> bool:
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
            expected = merge.result(stored, source, partitioned="partitioned" in name)
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
            if self.run(project, name, chance):
                break


def sql_rows(rows: list[Row]) -> str:
    return ", ".join(f"({i}, '{p}', {literal(n)}, {literal(v)})" for i, p, n, v in rows)

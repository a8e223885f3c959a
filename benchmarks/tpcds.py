"""TPC-DS for the longevity benchmark: the tables of a scale, rounds of data maintenance, tiny batches and the queries.

DuckDB's ``dsdgen`` makes the tables and gives the text of the queries. It lives in an environment of its own below ``.cache``, as
the project pins another DuckDB. ``prepare`` does all this once for a scale; this file is also the script that runs in there.

Fact tables get one more column, the month of their sale or return (``200011``; 0 without a date), as the partition column.

**A round** does what TPC-DS's data maintenance functions do. Its refresh sets come from the tables themselves, so that every run
has the same ones:

* *DF_SS, DF_CS, DF_WS* delete the sales of three ranges of two days, one in the low, medium and high season each, and the returns
  of their tickets or orders. The months before August, until October and after it are the seasons.
* *DF_I* deletes the weeks of inventory that begin in a range of seven days from each of these dates.
* *LF_SS, LF_SR, LF_CS, LF_CR, LF_WS, LF_WR* insert copies of every thousandth ticket or order with all its lines and returns,
  with numbers never seen before, sold on the deleted days; dates of shipping and of return keep their distance.
* *LF_I* inserts the deleted weeks of inventory again with other quantities.

What is deleted is two days of about 1,800 three times, 0.3 % of the sales, and 1 % of the inventory; what is inserted is a
thousandth of the sales, and the inventory that went. TPC-DS's own numbers of refresh rows were not at hand to compare with. At the
smallest scales a thousandth would be nothing: some thirty tickets are copied there.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_PYTHON = ROOT / ".cache" / "tpcds-duckdb" / "bin" / "python"
_PACKAGES = ("duckdb==1.5.5", "duckdb-extension-tpcds==1.5.5")
_EVERY, _AT_LEAST = 1_000, 30
TRICKLE_ROWS = 10
TRICKLED = "store_sales"
TRICKLE_CHECK = (
    "select count(*) n, sum(ss_quantity) q, sum(ss_net_paid) p, sum(ss_ext_sales_price) e from store_sales"
)
QUERIES = (3, 21, 20, 12, 93, 40, 5, 30, 1, 7, 15, 19, 22, 26, 42, 43, 45, 46, 48, 52, 68, 90, 96, 97, 98)
"""Numbers of the queries that are run: 25 that Spark takes as DuckDB spells them, over all seven fact tables and with the first
few over most of them. Others quote names as Spark does not, or are empty at small scales."""


@dataclass(frozen=True)
class Fact:
    """A fact table.

    Args:
        key: Columns of the record key.
        date: Column of the day by which rows are deleted.
        month: Partition column that this benchmark adds.
        others: Further columns of days.
        sales: For returns, the fact table of their sales.
    """

    key: tuple[str, ...]
    date: str
    month: str
    others: tuple[str, ...] = ()
    sales: str | None = None


FACTS = {
    "store_sales": Fact(("ss_item_sk", "ss_ticket_number"), "ss_sold_date_sk", "ss_month"),
    "store_returns": Fact(
        ("sr_item_sk", "sr_ticket_number"), "sr_returned_date_sk", "sr_month", sales="store_sales"
    ),
    "catalog_sales": Fact(
        ("cs_item_sk", "cs_order_number"), "cs_sold_date_sk", "cs_month", ("cs_ship_date_sk",)
    ),
    "catalog_returns": Fact(
        ("cr_item_sk", "cr_order_number"), "cr_returned_date_sk", "cr_month", sales="catalog_sales"
    ),
    "web_sales": Fact(("ws_item_sk", "ws_order_number"), "ws_sold_date_sk", "ws_month", ("ws_ship_date_sk",)),
    "web_returns": Fact(
        ("wr_item_sk", "wr_order_number"), "wr_returned_date_sk", "wr_month", sales="web_sales"
    ),
    "inventory": Fact(("inv_date_sk", "inv_item_sk", "inv_warehouse_sk"), "inv_date_sk", "inv_month"),
}
RETURNS = tuple(name for name, fact in FACTS.items() if fact.sales)


def prepare(scale: float, rounds: int, trickle: int) -> Path:
    """Make the data of a scale where they are missing and return their folder.

    Args:
        scale: Scale of TPC-DS.
        rounds: Rounds of data maintenance.
        trickle: Tiny batches; with any there are no rounds, and no other table than theirs.
    """
    folder = ROOT / ".cache" / "longevity" / f"sf{scale:g}{f'-trickle{trickle}' * bool(trickle)}"
    done = folder / "_DONE"
    if done.exists() and json.loads(done.read_text("utf-8"))["rounds"] >= rounds:
        return folder
    _environment()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    arguments = [f"--scale={scale}", f"--rounds={rounds}", f"--trickle={trickle}", f"--folder={folder}"]
    subprocess.run([str(_PYTHON), __file__, *arguments], check=True, env=_bare())
    done.write_text(json.dumps({"rounds": rounds}), "utf-8")
    return folder


def _environment() -> None:
    """Make the environment of DuckDB and its extension."""
    if _PYTHON.exists():
        return
    home, uv = str(_PYTHON.parent.parent), shutil.which("uv")
    if uv:
        commands = [
            [uv, "venv", "-q", "--python", sys.executable, home],
            [uv, "pip", "install", "-q", "--python", str(_PYTHON), *_PACKAGES],
        ]
    else:
        pip = [str(_PYTHON), "-m", "pip", "install", "-q", "--disable-pip-version-check", *_PACKAGES]
        commands = [[sys.executable, "-m", "venv", home], pip]
    for command in commands:
        subprocess.run(command, check=True, env=_bare())


def _bare() -> dict[str, str]:
    """Environment variables without those that would bring this project's packages along."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}


@dataclass(frozen=True)
class Days:
    """A range of days of a round, in one month."""

    first: date
    count: int

    @property
    def month(self) -> int:
        """The month as partitions name it."""
        return self.first.year * 100 + self.first.month

    def numbers(self) -> list[int]:
        """Return the surrogate keys of the days in ``date_dim``."""
        return [
            (self.first + timedelta(each) - date(1900, 1, 1)).days + 2_415_021 for each in range(self.count)
        ]

    def condition(self, fact: Fact) -> str:
        """SQL for the rows of these days."""
        numbers = self.numbers()
        return f"({fact.month} = {self.month} and {fact.date} between {numbers[0]} and {numbers[-1]})"


def ranges(number: int, count: int = 2) -> list[Days]:
    """Return the three ranges of a round, by number from 1, with so many days each."""
    low = date(1998 + number % 5, 1 + number % 7, 10)
    medium = date(1998 + (number + 2) % 5, 8 + number % 3, 5 + number % 10)
    high = date(1998 + (number + 3) % 5, 11 + number % 2, 12 + number % 10)
    return [Days(first, count) for first in (low, medium, high)]


def deletion(table: str, number: int) -> str:
    """SQL condition of a round's deletes in a table of sales, or in inventory."""
    days = ranges(number, 7 if table == "inventory" else 2)
    return " or ".join(each.condition(FACTS[table]) for each in days)


class _Maker:
    """Makes everything in DuckDB."""

    def __init__(self, folder: Path) -> None:
        import duckdb
        import duckdb_extension_tpcds

        self.folder = folder
        self.sql: Any = duckdb.connect(str(folder / "tpcds.duckdb")).execute
        package = Path(duckdb_extension_tpcds.__file__).parent
        self.sql(f"load '{next(package.glob('extensions/*/tpcds.duckdb_extension'))}'")

    def make(self, scale: float, rounds: int, trickle: int) -> None:
        """Make the tables and all that goes with them."""
        self.sql(f"call dsdgen(sf={scale})")
        for table, fact in FACTS.items():
            self._with_month(table, fact)
        if trickle:
            self._save(f"select * from {TRICKLED}", self.folder / "load" / TRICKLED)
            self._trickle(trickle)
            return
        for (table,) in self.sql("select table_name from duckdb_tables() order by 1").fetchall():
            self._save(f"select * from {table}", self.folder / "load" / table)
        self._queries()
        self._save_facts(0)
        most = {
            name: self._value(f"select max({fact.key[1]}) from {name}")
            for name, fact in FACTS.items()
            if name not in RETURNS
        }
        for number in range(1, rounds + 1):
            self._round(number, most)
            self._save_facts(number)

    def _value(self, query: str) -> int:
        return int(self.sql(query).fetchone()[0])

    def _save(self, query: str, path: Path) -> None:
        path.mkdir(parents=True)
        self.sql(f"copy ({query}) to '{path}/part-0.parquet' (format parquet, compression snappy)")

    def _save_facts(self, number: int) -> None:
        for table in FACTS:
            self._save(f"select * from {table}", self.folder / "expected" / str(number) / table)

    def _with_month(self, table: str, fact: Fact) -> None:
        month = f"coalesce(d_year * 100 + d_moy, 0)::int {fact.month}"
        self.sql(
            f"create or replace table {table} as select t.*, {month} from {table} t "
            f"left join date_dim on d_date_sk = {fact.date}"
        )

    def _queries(self) -> None:
        """Save the queries; rows that an order leaves equal are put in order by all columns, so that a limit finds the same."""
        found = {}
        for number, text in self.sql("select query_nr, query from tpcds_queries()").fetchall():
            query = text.strip().rstrip(";").strip()
            columns = len(self.sql(f"describe {query}").fetchall())
            parts = re.fullmatch(r"(.*\border\s+by\b[^)]*?)(\s+limit\s+\d+)", query, re.I | re.S)
            if parts:
                query = f"{parts[1]}, {', '.join(map(str, range(1, columns + 1)))}{parts[2]}"
            found[number] = query
        (self.folder / "queries.json").write_text(json.dumps(found, indent=1), "utf-8")

    def _round(self, number: int, most: dict[str, int]) -> None:
        folder = self.folder / "rounds" / str(number)
        for table in RETURNS:
            fact, sales = FACTS[table], str(FACTS[table].sales)
            gone = f"select {FACTS[sales].key[1]} from {sales} where {deletion(sales, number)}"
            columns = f"{', '.join(fact.key)}, {fact.month}"
            where = f"{fact.key[1]} in ({gone})"
            self._save(f"select {columns} from {table} where {where}", folder / "deleted" / table)
            self._new(sales, table, number, most[sales], folder)
            self.sql(f"delete from {table} where {where}")
            self.sql(f"delete from {sales} where {deletion(sales, number)}")
        quantity = f"(inv_quantity_on_hand * 7 + {number}) % 1000"
        again = f"select * replace ({quantity}::int as inv_quantity_on_hand) from inventory"
        self._save(f"{again} where {deletion('inventory', number)}", folder / "inserted" / "inventory")
        self.sql(f"delete from inventory where {deletion('inventory', number)}")
        for table in FACTS:
            self.sql(f"insert into {table} select * from '{folder}/inserted/{table}/*.parquet'")

    def _new(self, sales: str, returns: str, number: int, most: int, folder: Path) -> None:
        """Save the new sales and returns of a round: copies with new numbers, on the days of its deletes."""
        fact, back = FACTS[sales], FACTS[returns]
        tickets = self._value(f"select count(distinct {fact.key[1]}) from {sales}")
        every = max(1, min(_EVERY, tickets // _AT_LEAST))
        days = [day for each in ranges(number) for day in each.numbers()]
        chosen = f"{{0}}.{fact.key[1]} <= {most} and {{0}}.{fact.key[1]} % {every} = {number % every}"
        day = f"{days}[1 + s.{fact.key[1]} // {every} % {len(days)}]::bigint"
        new = f"s.{fact.key[1]} + {most * number} as {fact.key[1]}"
        shifts = "".join(f", {each} - {fact.date} + {day} as {each}" for each in fact.others)
        month = self._month(day)
        self._save(
            f"select * replace ({new}, {day} as {fact.date}{shifts}, {month} as {fact.month}) from {sales} s "
            f"where {chosen.format('s')}",
            folder / "inserted" / sales,
        )
        when = f"r.{back.date} - s.{fact.date} + {day}"
        values = f"s.{fact.key[1]} + {most * number} as {back.key[1]}, {when} as {back.date}"
        self._save(
            f"select r.* replace ({values}, {self._month(when)} as {back.month}) from {returns} r join {sales} s "
            f"on {back.key[0]} = {fact.key[0]} and {back.key[1]} = {fact.key[1]} where {chosen.format('s')}",
            folder / "inserted" / returns,
        )

    @staticmethod
    def _month(day: str) -> str:
        at = f"(date '1900-01-01' + ({day} - 2415021)::int)"
        return f"coalesce(year({at}) * 100 + month({at}), 0)::int"

    def _trickle(self, batches: int) -> None:
        """Save tiny batches for one table: half of the rows are there and change, half are copies with new tickets."""
        each = TRICKLE_ROWS // 2
        rows, most = self.sql(f"select count(*), max(ss_ticket_number) from {TRICKLED}").fetchone()
        order = "row_number() over (order by ss_item_sk, ss_ticket_number) - 1"
        self.sql(f"create temp table numbered as select *, {order} n from {TRICKLED}")
        picks = f"select i // {each} b, (i * 7919) % {rows} n from range({batches * each}) t(i)"
        old = "n.* exclude (n) replace (ss_quantity + 1 + p.b % 3 as ss_quantity, (ss_net_paid + 1)::decimal(7, 2) as ss_net_paid)"
        new = f"n.* exclude (n) replace (n.ss_ticket_number + {most} * (p.b + 1) as ss_ticket_number)"
        joined = f"from ({picks}) p join numbered n using (n)"
        self.sql(
            f"create temp table batches as select {old}, p.b {joined} union all by name select {new}, p.b {joined}"
        )
        self.sql("alter table batches alter b type int")
        path = self.folder / "trickle"
        self.sql(f"copy batches to '{path}' (format parquet, partition_by (b))")
        last = "qualify row_number() over (partition by ss_item_sk, ss_ticket_number order by b desc) = 1"
        everything = f"(select *, -1 b from {TRICKLED} union all by name select * from batches)"
        check = TRICKLE_CHECK.replace("from store_sales", f"from (select * from {everything} {last})")
        digest = [float(value) for value in self.sql(check).fetchone()]
        (self.folder / "trickle.json").write_text(json.dumps(digest), "utf-8")


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--trickle", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    given = parser.parse_args()
    _Maker(given.folder).make(given.scale, given.rounds, given.trickle)
    (given.folder / "tpcds.duckdb").unlink()


if __name__ == "__main__":
    _main()

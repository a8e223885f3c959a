"""Models that read the new and changed files of a source alone: the checkpoint, limits, drift, bad files."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from hudi_engine.format.storage import open_storage
from hudi_engine.table.changes.checkpoint import read_checkpoint
from hudi_engine.table.changes.new_files import TakenFiles
from hudi_engine.table.state import TableState

SOURCES = """
sources:
  - name: shop
    tables:
      - {name: orders, external: {location: landing/orders, using: json}}
      - {name: bills, external: {location: landing/bills, using: csv, options: {header: true, pathGlobFilter: "*.csv"}}}
      - {name: nothing, external: {location: landing/nothing, using: json}}
      - {name: tables, external: {location: landing/table, using: hudi}}
"""
NEW = "{{ hudi_new_files(source('shop', '%s')%s) }}"
OPTIONS = ", max_files=var('max_files', none), bad_files=var('bad_files', 'fail')"
KEYED = (
    """
{{ config(materialized='incremental', unique_key='id', precombine_field='landed', on_schema_change='append_new_columns') }}
select *, _metadata.file_modification_time as landed from """
    + NEW % ("orders", OPTIONS)
    + """
{{ "where assert_true(false) is null" if var('dies', false) else "" }}
"""
)
BY_FILE = (
    """
{{ config(materialized='incremental', unique_key='file', incremental_strategy='delete+insert') }}
select id, amount, _metadata.file_name as file from """
    + NEW % ("orders", OPTIONS)
)


class Shop:
    """Folders of files, and the tables over them."""

    def __init__(self, project: Any) -> None:
        self.project, self.landing = project, Path(project.project_root) / "landing"
        self.time = 1_700_000_000

    def put(self, name: str, *rows: dict[str, Any] | str, folder: str = "orders") -> None:
        path = self.landing / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in rows))
        self.time += 1
        os.utime(path, (self.time, self.time))

    def remove(self, name: str) -> None:
        (self.landing / "orders" / name).unlink()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return sorted((tuple(row) for row in self.project.run_sql(query, fetch="all")), key=str)

    def run(self, *models: str, expect_pass: bool = True, **given: Any) -> dict[str, Any]:
        arguments = ["run", "-s", *models, "--vars", json.dumps(given)]
        return {each.node.name: each for each in run_dbt(arguments, expect_pass=expect_pass)}

    def taken(self, model: str, source: str = "shop.orders") -> int:
        return TakenFiles.parse(read_checkpoint(self.state(model))[source]).count

    def state(self, model: str) -> TableState:
        root = self.project.adapter.config.credentials.location_root
        return TableState.load(open_storage(f"{root}/{self.project.test_schema}/{model}"))

    def newest(self, model: str) -> str:
        return self.state(model).timeline.completed_writes[-1].requested_time


def order(number: int, amount: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "amount": amount, **more}


class TestNewFiles:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        table = "{{ config(materialized='%s') }} select * from "
        return {
            "sources.yml": SOURCES,
            "keyed.sql": KEYED,
            "by_file.sql": BY_FILE,
            "bills.sql": table % "incremental" + NEW % ("bills", ""),
            "whole.sql": table % "table" + NEW % ("orders", ""),
            "both.sql": table % "incremental"
            + NEW % ("orders", "")
            + " union all select *, null from {{ source('shop', 'orders') }} where false",
            "started.sql": table % "incremental" + NEW % ("orders", ", start_after='3'"),
            "nothing.sql": table % "incremental" + NEW % ("nothing", ""),
            "of_table.sql": table % "incremental" + NEW % ("tables", ""),
            "misspelt.sql": table % "incremental" + NEW % ("orders", ", max_file=1, bad_files='none'"),
            "limited.sql": table % "table" + NEW % ("orders", ", max_files=1"),
            "twice.sql": table % "incremental"
            + NEW % ("orders", ", max_files=1")
            + " union all select * from "
            + NEW % ("orders", ", max_files=2"),
        }

    @pytest.fixture(scope="class")
    def shop(self, project: Any) -> Shop:
        found = Shop(project)
        found.put("1.json", order(1, 10), order(2, 20))
        found.put("2.json", order(3, 30))
        results = found.run("keyed", "by_file")
        assert results["keyed"].adapter_response["_message"].endswith(" | 2 new files")
        return found

    def check(self, shop: Shop, keyed: list[tuple[int, int]], by_file: list[tuple[int, int, str]]) -> None:
        assert shop.rows("select id, amount from {schema}.keyed") == keyed
        assert shop.rows("select id, amount, file from {schema}.by_file") == by_file

    def test_files_that_come_change_and_go(self, shop: Shop) -> None:
        first = [(1, 10, "1.json"), (2, 20, "1.json"), (3, 30, "2.json")]
        self.check(shop, [each[:2] for each in first], first)
        before = shop.newest("keyed")
        (message,) = {each.adapter_response["_message"] for each in shop.run("keyed", "by_file").values()}
        assert message.startswith("0 new files since shop.orders 2 files, the newest of 2023-11-14 ")
        assert shop.newest("keyed") == before, "nothing is committed"

        shop.put("3.json", order(4, 40), order(1, 11))
        shop.put("2.json", order(5, 50))
        shop.remove("1.json")
        results = shop.run("keyed", "by_file")
        assert results["by_file"].adapter_response["files_read"] == 2
        by_file = [
            (1, 10, "1.json"),
            (1, 11, "3.json"),
            (2, 20, "1.json"),
            (4, 40, "3.json"),
            (5, 50, "2.json"),
        ]
        self.check(shop, [(1, 11), (2, 20), (3, 30), (4, 40), (5, 50)], by_file)

    def test_a_run_that_fails_takes_nothing(self, shop: Shop) -> None:
        shop.put("4.json", order(6, 60))
        before = shop.taken("keyed")
        shop.run("keyed", expect_pass=False, dies=True)
        assert shop.taken("keyed") == before
        shop.run("keyed", "by_file")
        assert (6, 60) in shop.rows("select id, amount from {schema}.keyed")
        assert shop.rows("select count(*) from {schema}.by_file where file = '4.json'") == [(1,)]

    def test_limits_take_the_oldest_files(self, shop: Shop) -> None:
        for number in (7, 8, 9):
            shop.put(f"{number}.json", order(number, number))
        results = shop.run("keyed", "by_file", max_files=2)
        assert results["keyed"].adapter_response["_message"].endswith(" | 2 new files, 1 waiting")
        assert shop.rows("select id from {schema}.by_file where id > 6") == [(7,), (8,)]
        shop.run("keyed", "by_file", max_files=2)
        assert shop.rows("select id from {schema}.by_file where id > 6") == [(7,), (8,), (9,)]

    def test_a_rollback_takes_the_files_back(self, shop: Shop) -> None:
        before = shop.taken("by_file")
        shop.put("10.json", order(10, 10))
        shop.run("keyed", "by_file")
        arguments = f"{{table: by_file, instant: '{shop.newest('by_file')}'}}"
        run_dbt(["run-operation", "hudi_rollback", "--args", arguments])
        assert shop.taken("by_file") == before
        shop.run("keyed", "by_file")
        assert shop.rows("select id from {schema}.by_file where id = 10") == [(10,)]
        _, log = run_dbt_and_capture(["run-operation", "hudi_checkpoint", "--args", "{table: by_file}"])
        assert re.search(r"shop.orders  \d+ files, the newest of 2023-11-14 22:13:\d\d UTC\n", log)

    def test_new_columns_obey_on_schema_change(self, shop: Shop) -> None:
        shop.put("11.json", order(11, 11, more="x"))
        shop.run("keyed", "by_file")
        assert shop.rows("select more from {schema}.keyed where id in (10, 11)") == [("x",), (None,)]
        shop.put("12.json", {"id": 12, "amount": None})
        shop.put("13.json", {"id": 13})
        shop.run("keyed", "by_file")
        found = "select id, cast(amount as string), more from {schema}.keyed where id > 11"
        assert shop.rows(found) == [(12, None, None), (13, None, None)]
        columns = [row[0] for row in shop.rows("describe {schema}.keyed")]
        assert "_metadata" not in columns and len(columns) == 4

    def test_bad_files_fail_the_run_or_go_to_the_error_table(self, shop: Shop) -> None:
        shop.put("14.json", '{"id": 14, "amount":')
        shop.put("15.json", order(15, 15))
        (failed,) = shop.run("keyed", expect_pass=False).values()
        assert re.search(
            r"ConfigError: Spark cannot read file:/.*/14.json as json: .*bad_files='skip'", failed.message
        )
        run_dbt(["compile", "-s", "keyed"])
        for _ in range(2):
            shop.run("keyed", expect_pass=False, bad_files="skip", dies=True)
        results = shop.run("keyed", "by_file", bad_files="skip")
        assert results["keyed"].adapter_response["files_set_aside"] == 1
        for model in ("keyed", "by_file"):
            assert shop.rows(f"select id from {{schema}}.{model} where id > 13") == [(15,)]
            ((file, reason, row),) = shop.rows(
                f"select source_file, reason, raw_row from {{schema}}.{model}__errors"
            )
            assert file.endswith("/14.json") and "alformed" in reason and row is None
        message = shop.run("keyed", bad_files="skip")["keyed"].adapter_response["_message"]
        assert message.startswith("0 new files since"), "a bad file is tried again once it has changed"
        shop.put("14.json", order(14, 14))
        shop.run("keyed", "by_file")
        assert shop.rows("select id from {schema}.by_file where id > 13") == [(14,), (15,)]

    def test_a_full_refresh_takes_the_files_that_are_there(self, shop: Shop) -> None:
        run_dbt(["run", "--full-refresh", "-s", "keyed", "by_file"])
        assert shop.rows("select count(*) from {schema}.by_file where file = '1.json'") == [(0,)]
        assert shop.taken("by_file") == len(list((shop.landing / "orders").iterdir()))
        assert shop.rows("select min(id), max(id) from {schema}.keyed") == [(1, 15)]

    def test_runs_of_no_rows_take_no_file(self, shop: Shop) -> None:
        before = shop.taken("keyed")
        shop.put("16.json", order(16, 16))
        run_dbt(["run", "--empty", "-s", "keyed", "by_file"])
        run_dbt(["compile", "-s", "keyed"])
        assert shop.taken("keyed") == before
        shop.run("keyed", "by_file")
        assert shop.rows("select id from {schema}.by_file where id > 15") == [(16,)]

    def test_only_the_new_files_are_read(self, shop: Shop) -> None:
        for each in (shop.landing / "orders").iterdir():
            size, times = each.stat().st_size, (each.stat().st_atime, each.stat().st_mtime)
            each.write_text("x" * size)
            os.utime(each, times)
        shop.put("17.json", order(17, 17))
        shop.run("keyed", "by_file")
        assert ("shop",) not in shop.rows("show schemas"), (
            "no table of all files was made, which infers its columns of them"
        )
        assert shop.rows("select id from {schema}.by_file where id > 16") == [(17,)]
        for each in (shop.landing / "orders").iterdir():
            if each.read_text().startswith("x"):
                each.unlink()

    def test_csv_files_go_by_the_names_of_their_columns(self, shop: Shop) -> None:
        shop.put("a.csv", "id,amount", "1,10", folder="bills")
        shop.put("readme.txt", "no bill", folder="bills")
        shop.run("bills")
        shop.put("b.csv", "amount,id", "20,2", folder="bills")
        shop.put("c.csv", "id", "3", folder="bills")
        shop.run("bills")
        assert shop.rows("select id, amount from {schema}.bills") == [("1", "10"), ("2", "20"), ("3", None)]

    def test_other_models_and_misuse(self, shop: Shop) -> None:
        shop.put("3.json", order(18, 18))
        names = ("whole", "both", "started", "nothing", "of_table", "misspelt", "twice", "limited")
        results = shop.run(*names, expect_pass=False)
        assert {name for name in names if results[name].status == "success"} == {"whole", "both", "started"}
        assert shop.rows("select id from {schema}.whole") == [(17,), (18,)]
        assert shop.rows("select id from {schema}.both") == [(17,), (18,)]
        assert shop.rows("select id from {schema}.started") == [(18,)]
        for name, text in {
            "limited": "limited is materialized as 'table', which takes all files in each run; leave max_files",
            "nothing": f"there are no files to read in {shop.landing}/nothing; put json files there",
            "of_table": r"shop.tables is no source of files; give source\(...\) with external: .* by hudi_changes\(\)",
            "misspelt": "hudi_new_files: max_file is no argument; did you mean 'max_files'.*bad_files is 'none'; legal values: fail",
            "twice": "hudi_new_files of shop.orders is in the model more than once, with different windows",
        }.items():
            assert re.search(text, results[name].message), results[name].message

"""Models that ask for a window of changes of their own, in place of the one after their checkpoint."""

from __future__ import annotations

import re
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.table.changes.checkpoint import read_checkpoint

from tests.functional.test_changes import ORDERS, Chain

pytestmark = pytest.mark.sampled

REPLAYED = """
{{{{ config(materialized='incremental', {config}) }}}}
select c.id, amount, ts, c._change_type, c._commit_time from {{{{ hudi_changes(ref('orders'), mode='{mode}',
    begin=var('begin', none), end=var('end', none)) }}}} c
"""


class TestWindowsOfTheirOwn:
    """A model that asks for another window than the one after its checkpoint is what its input is, or is refused."""

    keyed = {
        "net": "unique_key='id'",
        "all": "unique_key='id', table_type='mor'",
        "timed": "unique_key='id', precombine_field='ts'",
        "swapped": "unique_key='id', incremental_strategy='delete+insert'",
    }

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        models = {
            name: REPLAYED.format(config=config, mode="all" if name == "all" else "net")
            for name, config in self.keyed.items()
        }
        # delete+insert takes the rows as they are told
        models["swapped"] = models["swapped"].replace(" c\n", " c where _change_type != 'delete'\n")
        log = REPLAYED.format(config="incremental_strategy='append'", mode="net")
        return {"orders.sql": ORDERS, "log.sql": log} | {f"{name}.sql": sql for name, sql in models.items()}

    @pytest.fixture(scope="class")
    def chain(self, project: Any) -> Chain:
        run_dbt(["run"])
        return Chain(project)

    def instant(self, chain: Chain, statement: str) -> str:
        """Change the input, and return the commit that did."""
        chain.sql(statement)
        return chain.state("orders").timeline.completed_writes[-1].requested_time

    def follow(self, *args: str, **variables: str) -> Any:
        said = ", ".join(f"{name}: '{value}'" for name, value in variables.items())
        return run_dbt(["run", "--exclude", "orders", "--vars", f"{{{said}}}", *args])

    def check(self, chain: Chain) -> None:
        orders = chain.rows("orders", "id, amount")
        for name in ("net", "all", "timed"):
            assert chain.rows(name, "id, amount") == orders, name

    @pytest.mark.parametrize("begin", ["earliest", "before"])
    def test_a_replay_takes_out_what_was_deleted_since_its_begin(self, chain: Chain, begin: str) -> None:
        before = self.instant(chain, "update orders set amount = amount + 1 where id = 1")
        chain.sql("insert into orders values (90, 1, 5, 1), (91, 1, 5, 1)")
        gone = 3 if begin == "earliest" else 4
        chain.sql(f"update orders set amount = amount + 7, ts = ts + 1 where id in (2, {gone})")
        self.follow()
        chain.sql(f"delete from orders where id in (90, {gone})")
        chain.sql("update orders set amount = amount - 7, ts = ts + 1 where id = 2")
        self.follow(begin=before if begin == "before" else begin)
        self.check(chain)
        chain.sql("delete from orders where id = 91")
        self.follow()
        self.check(chain)

    def test_a_keyed_model_is_not_taken_back_to_older_rows(self, chain: Chain) -> None:
        oldest = self.instant(chain, "update orders set amount = amount + 1 where id = 2")
        older = self.instant(chain, "update orders set amount = amount + 1 where id = 1")
        chain.sql("insert into orders values (95, 1, 5, 1)")
        self.follow()
        noted = read_checkpoint(chain.state("log"))
        for begin in ("earliest", oldest):
            _, told = run_dbt_and_capture(
                ["run", "-s", "net", "all", "--vars", f"{{begin: {begin}, end: '{older}'}}"],
                expect_pass=False,
            )
            assert told.count(f"and the window ends at {older}: its rows would become older ones") >= 2
        self.check(chain)
        rows = len(chain.rows("log", "id"))
        self.follow("-s", "log", begin="earliest", end=older)
        assert len(chain.rows("log", "id")) == rows + len(chain.rows("orders", "id")) - 1
        assert read_checkpoint(chain.state("log")) == noted, "what it had taken it has not to take again"

    @pytest.mark.parametrize("begin", ["earliest", "later"])
    def test_a_checkpoint_that_was_taken_back_is_a_gap_whatever_begins(
        self, chain: Chain, begin: str
    ) -> None:
        first = 400 if begin == "later" else 500
        taken_back = self.instant(chain, f"insert into orders values ({first}, 1, 5, 1)")
        self.follow()
        run_dbt(["run-operation", "hudi_rollback", "--args", f"{{table: orders, instant: '{taken_back}'}}"])
        later = self.instant(chain, f"insert into orders values ({first + 1}, 1, 5, 1)")
        chain.sql(f"insert into orders values ({first + 2}, 1, 5, 1)")
        said = f"{{begin: '{later if begin == 'later' else begin}'}}"
        results = run_dbt(["run", "--exclude", "orders", "--vars", said], expect_pass=False)
        assert all("taken back by rollback" in result.message for result in results)
        assert all("on_gap='compare'" in result.message for result in results)
        query = f"select * from {{{{ hudi_changes(ref('orders'), begin='{taken_back}') }}}}"
        with pytest.raises(DbtRuntimeError, match="Choose on_gap='snapshot'") as told:
            run_dbt(["show", "--inline", query])
        assert "on_gap='compare'" not in str(told.value), "no model is under way"
        assert "--full-refresh" not in str(told.value)
        self.follow("--full-refresh")
        self.check(chain)

    def test_a_window_that_leaves_changes_out_is_refused(self, chain: Chain) -> None:
        self.follow()
        skipping = self.instant(chain, "update orders set amount = amount + 1 where id = 1")
        chain.sql("update orders set amount = amount + 1 where id = 2")
        said = ["--exclude", "orders", "--vars", f"{{begin: '{skipping}'}}"]
        results = run_dbt(["run", *said], expect_pass=False)
        assert all("would never reach it. Leave begin out" in result.message for result in results)
        assert {result.status for result in run_dbt(["compile", *said])} == {"success"}
        self.follow()
        self.check(chain)
        for name in (*self.keyed, "log"):
            chosen = f"{{table: {name}, input: orders, set: '{skipping}'}}"
            run_dbt(["run-operation", "hudi_checkpoint", "--args", chosen])
        self.follow(begin=skipping)
        self.check(chain)


MOVING = """
{{ config(materialized='incremental', unique_key='id', partition_by=['customer'], options={'hoodie.index.type': 'GLOBAL_SIMPLE'}) }}
select cast(id as int) as id, cast(id % 2 as int) as customer, 10 * id as amount from range(1, 7) where false != IS_FIRST
"""
UNKEYED = """
{{ config(materialized='incremental', incremental_strategy='append') }}
select cast(id as int) as id, 5 as amount, map('k', 5) as notes from range(20, 23) where false != IS_FIRST
"""
OF_MOVING = """
{{ config(materialized='incremental', unique_key='id') }}
select id, amount, _change_type, _commit_time from {{ hudi_changes(ref('moving'), mode='MODE', begin=var('begin', none)) }}
"""
OF_UNKEYED = OF_MOVING.replace("ref('moving')", "ref('unkeyed')")


class TestWindowsOverMovingAndUnkeyedRows:
    """Rows whose key lies elsewhere by now, and rows without a key, are followed in any mode."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        mixed = (
            OF_MOVING.replace("MODE", "net")
            + " union all "
            + OF_UNKEYED.split("}}", 1)[1].replace("MODE", "all")
        )
        first = "{{ 'true' if not is_incremental() else 'false' }}"
        return {
            "moving.sql": MOVING.replace("IS_FIRST", first),
            "unkeyed.sql": UNKEYED.replace("IS_FIRST", first),
            "mixed.sql": mixed,
            "twice.sql": OF_MOVING.replace("MODE", "net") + " union all "
            "select id, amount, _change_type, _commit_time from {{ hudi_changes(ref('moving')) }} where false",
            **{f"moved_{mode}.sql": OF_MOVING.replace("MODE", mode) for mode in ("net", "all")},
            **{f"plain_{mode}.sql": OF_UNKEYED.replace("MODE", mode) for mode in ("net", "all")},
        }

    def check(self, chain: Chain) -> None:
        moving, unkeyed = (chain.rows(name, "id, amount") for name in ("moving", "unkeyed"))
        for mode in ("net", "all"):
            assert chain.rows(f"moved_{mode}", "id, amount") == moving, mode
            assert chain.rows(f"plain_{mode}", "id, amount") == unkeyed, mode

    @pytest.mark.parametrize("begin", ["none", "earliest", "before"])
    def test_models_are_what_their_inputs_are(self, project: Any, begin: str) -> None:
        chain, base = Chain(project), project.test_schema
        run_dbt(["run", "--full-refresh", "--exclude", "mixed"])
        before = chain.state("moving").timeline.completed_writes[-1].requested_time
        for name, row in (("moving", "(90, 1, 5)"), ("unkeyed", "(91, 5, map('k', 5))")):
            project.run_sql(f"insert into {base}.{name} values {row}")
            project.run_sql(f"update {base}.{name} set amount = 6 where id in (2, 21)")
        followers = ["run", "--exclude", "moving", "unkeyed", "twice", "mixed"]
        run_dbt(followers)
        # the row with id 1 lies in another partition, and its old one changes later
        for statement in (
            "delete from moving where id in (1, 90)",
            "insert into moving values (1, 0, 77)",
            "update moving set amount = 78 where id = 3",
            "delete from unkeyed where id = 91",
            "update unkeyed set amount = 5 where id = 21",
        ):
            project.run_sql(re.sub(r"(moving|unkeyed)", rf"{base}.\1", statement))
        given = before if begin == "before" else begin
        run_dbt([*followers, *([] if begin == "none" else ["--vars", f"{{begin: '{given}'}}"])])
        self.check(chain)
        run_dbt(followers)
        self.check(chain)

    def test_an_input_has_one_window_in_a_run(self, project: Any) -> None:
        run_dbt(["run", "--full-refresh", "--exclude", "mixed"])
        run_dbt(["run", "-s", "twice"])
        (result,) = run_dbt(["run", "-s", "twice", "--vars", "{begin: earliest}"], expect_pass=False)
        assert "is in the model more than once, with different windows" in result.message

    def test_inputs_of_one_model_have_one_mode(self, project: Any) -> None:
        run_dbt(["run", "-s", "moving", "unkeyed"])
        (result,) = run_dbt(["run", "-s", "mixed"], expect_pass=False)
        assert "Give all inputs of a model the same mode" in result.message

"""Changes over long random histories, and a chain of models over thirty runs with everything that can happen in between."""

from __future__ import annotations

import random
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from hudi_engine.table.state import TableState

from tests.functional.conftest import *  # noqa: F403
from tests.functional.test_changes import COPY, DOUBLED, ORDERS, TOTALS, Chain
from tests.helpers.histories import Shape, random_history
from tests.helpers.told_changes import check_all_pairs, check_by_spark, is_whole
from tests.spark import conftest as one_session

RUNS = 30
spark = one_session.spark


@pytest.mark.parametrize("seed", range(60))
def test_every_window_of_a_long_history(spark: Any, tmp_path: Any, seed: int) -> None:
    shape = Shape.any(random.Random(seed))
    table, states = random_history(spark, tmp_path / "t", shape, seed, 25)
    check_all_pairs(table, states, shape)
    first, last = list(states)[0], list(states)[-1]
    if is_whole(TableState.load(table.storage), first):
        check_by_spark(table, states, [(first, last)], shape)


class TestThirtyRunsOfAChain:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": ORDERS, "doubled.sql": DOUBLED, "copied.sql": COPY, "totals.sql": TOTALS}

    def test_each_state_is_that_of_the_models_built_from_nothing(self, project: Any) -> None:
        run_dbt(["run"])
        chain, random_ = Chain(project), random.Random(30)
        for run in range(RUNS):
            extra = self.disturb(chain, random_, run)
            run_dbt(["run", "--exclude", "orders", *extra])
            chain.check()

    def disturb(self, chain: Chain, random_: random.Random, run: int) -> list[str]:
        """Change the orders, and do what goes wrong or back in between; return more arguments of the run."""
        statements = [
            "delete from orders where id = {id}",
            "update orders set amount = amount + {id} where id >= {id}",
            "update orders set customer = {id} % 4 where id = {id}",
            "insert into orders values ({new}, {id} % 4, {id}, 1)",
            # late: loses against the row that is there
            "merge into orders t using (select {id} id, 0 customer, -1L amount, 0L ts) s on t.id = s.id "
            "when matched then update set *",
        ]
        for _ in range(random_.randrange(1, 4)):
            statement = random_.choice(statements)
            chain.sql(statement.format(id=random_.randrange(1, 9), new=random_.randrange(100, 10**6)))
        if run % 5 == 1:
            chain.sql(f"insert into orders values ({1000 + run}, 1, 5, 1)")
            run_dbt(["run", "--exclude", "orders", "--vars", "{dies: true}"], expect_pass=False)
        newest = [each.requested_time for each in chain.state("copied").timeline.completed_writes]
        if run % 5 == 2 and len(newest) > 1:
            run_dbt(
                ["run-operation", "hudi_rollback", "--args", f"{{table: copied, instant: '{newest[-1]}'}}"]
            )
            # the next in the chain has seen what is gone now
            return ["--full-refresh"]
        if run % 5 == 4:
            args = f"{{table: totals, instant: '{self.earlier(chain, 'totals')}'}}"
            run_dbt(["run-operation", "hudi_restore", "--args", args])
        return ["--full-refresh"] if run % 10 == 9 else []

    def earlier(self, chain: Chain, name: str) -> str:
        """The write before the newest, unless what it has consumed was taken back since."""
        writes = [each.requested_time for each in chain.state(name).timeline.completed_writes]
        undone = [
            each.requested_time
            for each in chain.state("copied").timeline.completed
            if each.action == "rollback"
        ]
        standing = [each for each in writes[:-1] if each > max(undone, default="")]
        return (standing or writes)[-1]

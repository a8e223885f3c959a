"""Where the code of a model takes changes: in Jinja, and not where a comment speaks of it."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.hudi.model.feeds import check_takes_changes, takes_changes


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("select * from {{ hudi_changes(ref('a')) }} c", True),
        ("{% set c = dbt_hudi.hudi_changes (ref('a')) %} select * from {{ c }}", True),
        ("select 1 -- no hudi_changes() here", False),
        ("{# hudi_changes(ref('a')) #} select '{{ x }} hudi_changes(' as text", False),
    ],
)
def test_a_call_counts_where_it_is_one(code: str, expected: bool) -> None:
    assert takes_changes(code) is expected


@pytest.mark.parametrize("strategy", ["microbatch", "my_append"])
def test_strategies_whose_commits_note_no_checkpoint_are_refused(strategy: str) -> None:
    with pytest.raises(DbtRuntimeError, match=f"stands in m, whose incremental_strategy is '{strategy}'"):
        check_takes_changes("m", strategy, {"my_append"})
    check_takes_changes("m", "merge", {"my_append"})

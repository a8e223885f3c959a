"""dbt 2 is refused with what to do, before anything of it is imported."""

from __future__ import annotations

import pytest

from dbt.adapters.hudi.dbt_version import check_dbt_core, check_installed


@pytest.mark.parametrize("found", ["2.0.0", "2.0.0b3", "10.1"])
def test_dbt_2_is_refused_with_the_next_step(found: str) -> None:
    with pytest.raises(
        ImportError, match=rf"dbt-core {found} is installed.*pip install 'dbt-core<2' dbt-hudi"
    ):
        check_dbt_core(found)


def test_dbt_1_is_taken() -> None:
    check_dbt_core("1.13.0rc1")
    check_installed()

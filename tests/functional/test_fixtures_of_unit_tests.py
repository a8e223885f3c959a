"""Unit tests of dbt: values of fixtures are of their columns' types, or the test says which is not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

MODEL = "select id, price, tags, {{ dbt.safe_cast(\"'abc'\", 'int') }} as none from {{ ref('inputs') }}"
INPUTS = "select 1 as id, cast(1.5 as decimal(4, 2)) as price, array(1) as tags"
TESTS = """
unit_tests:
  - name: fits
    model: priced
    given: [{input: ref('inputs'), rows: [{id: '1', price: 2.5, tags: "array(3)"}, {id: null, price: null, tags: "null"}]}]
    expect: {rows: [{ID: 1, price: '2.5', tags: "array(3)", none: null}, {id: null, price: null, tags: null, none: null}]}
  - name: given_that_is_none
    model: priced
    given: [{input: ref('inputs'), rows: [{id: "it's"}]}]
    expect: {rows: [{id: null}]}
  - name: expected_that_is_none
    model: priced
    given: [{input: ref('inputs'), rows: [{price: null}]}]
    expect: {rows: [{price: 1234.5}]}
  - name: item_that_is_none
    model: priced
    given: [{input: ref('inputs'), rows: [{tags: "array('x')"}]}]
    expect: {rows: [{tags: null}]}
"""


PAGE = Path(__file__).resolve().parents[2] / "docs" / "contracts.md"
OF_THE_PAGE = re.compile(r"```yaml\n# models/parcels\.yml\n(.*?)```", re.DOTALL)
LANDED = """
select 1 as id, array(1) as sizes, map('a', 1) as counts, named_struct('city', 'Ulm', 'zip', 1) as place, X'01' as raw
"""


class TestFixtures:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"inputs.sql": INPUTS, "priced.sql": MODEL, "tests.yml": TESTS}

    def test_a_value_that_is_not_of_its_columns_type_is_told(self, project: Any) -> None:
        run_dbt(["run"])
        found = {each.node.name: each for each in run_dbt(["test"], expect_pass=False)}
        assert str(found.pop("fits").status) == "pass"
        said = {name: str(each.message) for name, each in found.items()}
        assert "value it's of column id does not fit its type int" in said["given_that_is_none"]
        assert (
            "value 1234.5 of column price does not fit its type decimal(4,2)" in said["expected_that_is_none"]
        )
        assert "CAST_INVALID_INPUT" in said["item_that_is_none"] and "'x'" in said["item_that_is_none"]


class TestFixturesOfThePage:
    """Lists, maps, structs and bytes are given as docs/contracts.md shows them."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        (tests,) = OF_THE_PAGE.findall(PAGE.read_text("utf-8"))
        text = "select * from {{ ref('landed_parcels') }}"
        return {"landed_parcels.sql": LANDED, "parcels.sql": text, "parcels.yml": tests}

    def test_they_pass_and_another_value_does_not(self, project: Any) -> None:
        run_dbt(["run"])
        (found,) = run_dbt(["test"])
        assert str(found.status) == "pass"
        page = Path(project.project_root) / "models" / "parcels.yml"
        page.write_text(page.read_text().replace("map('k', 1)", "map('k', 2)", 1))
        (found,) = run_dbt(["test"], expect_pass=False)
        assert str(found.status) == "fail"

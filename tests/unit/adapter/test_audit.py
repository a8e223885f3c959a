"""What `audit` and `pre_commit_tests` may say, and which of dbt's tests they mean."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.hudi.audit.run import audit_tests
from dbt.adapters.hudi.model.audit import AuditConfig, AuditTest
from dbt.adapters.hudi.model.plan import Places, resolve_plan

PLACES = Places("/warehouse")
MODEL = "model.shop.orders"


def audit_of(**config: Any) -> AuditConfig:
    given = {"config": {"materialized": "incremental", **config}}
    return resolve_plan(given, "s", "orders", PLACES, own_strategies=["mine"]).audit


def test_names_sql_and_named_sql_are_told_apart() -> None:
    audit = audit_of(
        pre_commit_tests=[
            "unique",
            "shop.few_rows",
            "select 1 from {{ this }};",
            {"name": "n", "sql": "select 2 from this"},
        ]
    )
    assert audit.named == ("unique", "shop.few_rows")
    assert audit.written == (
        ("pre_commit_tests[3]", "select 1 from this"),
        ("n", "select 2 from this"),
    )
    assert not audit.everything and bool(audit)
    assert not audit_of() and audit_of(audit="true").everything
    assert audit_of(wap=True) == audit_of(audit=True) and audit_of(wap=True, audit=True).everything


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"audit": "maybe"}, "audit is 'maybe'; legal values: true, false"),
        ({"audit": True, "wap": False}, "audit and wap are one config and have different values"),
        ({"pre_commit_tests": 7}, "pre_commit_tests is 7; give a list"),
        ({"pre_commit_tests": [{"name": "x"}]}, "pre_commit_tests has {'name': 'x'}; give a list"),
        ({"pre_commit_tests": ["select * from {{ ref('x') }}"]}, "make it a data test and give its name"),
        (
            {"audit": True, "incremental_strategy": "mine"},
            "a strategy of the project's own that writes by SQL",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(config: dict[str, Any], said: str) -> None:
    with pytest.raises(DbtRuntimeError, match="nothing was run") as raised:
        audit_of(**config)
    assert said in str(raised.value)


def node(name: str, kind: str | None, *reads: str) -> Any:
    return SimpleNamespace(
        unique_id=f"test.{name}",
        name=name,
        alias=name,
        resource_type="test",
        depends_on=SimpleNamespace(nodes=list(reads)),
        attached_node=None if kind is None else reads[0],
        test_metadata=None if kind is None else SimpleNamespace(name=kind),
    )


def chosen(monkeypatch: pytest.MonkeyPatch, asked: AuditConfig) -> list[str]:
    found = [
        node("unique_orders_id", "unique", MODEL),
        node("relationships_lines", "relationships", "model.shop.lines", MODEL),
        node("adds_up", None, MODEL),
        node("agree", None, MODEL, "model.shop.lines"),
        node("unique_lines_id", "unique", "model.shop.lines"),
    ]
    manifest = SimpleNamespace(nodes={each.unique_id: each for each in found})
    monkeypatch.setattr(
        "dbt.adapters.hudi.audit.run._compiled",
        lambda nodes, *_: [AuditTest(each.name, "") for each in nodes],
    )
    return [each.name for each in audit_tests(asked, MODEL, manifest, None)]


def test_audit_means_the_tests_that_are_about_the_model_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, AuditConfig(everything=True)) == ["unique_orders_id", "adds_up"]


def test_a_name_means_a_test_or_all_of_a_kind_and_brings_in_others(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = AuditConfig(named=("unique", "agree"), written=(("w", "select 1"),))
    assert chosen(monkeypatch, asked) == ["unique_orders_id", "agree", "w"]
    with pytest.raises(DbtRuntimeError, match="names 'uniqe', but no test of the model has this name"):
        chosen(monkeypatch, AuditConfig(named=("uniqe",)))


def test_the_count_is_compared_as_the_test_says() -> None:
    test = AuditTest("t", "select * from x", "sum(n)", "> 1", "> 5")
    assert test.counted.startswith(
        "select sum(n) as failures, sum(n) > 1 as should_warn, sum(n) > 5 as should_error"
    )


def test_an_audit_that_no_test_is_attached_to_is_said() -> None:
    nobody = SimpleNamespace(nodes={})
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "dbt.adapters.hudi.audit.run.logger.warning", lambda text, *a: said.append(text.format(*a))
        )
        assert audit_tests(AuditConfig(everything=True), MODEL, nobody, None) == ()
    assert said == [f"audit is on for {MODEL}, but no test is attached to it: nothing looks at its rows"]

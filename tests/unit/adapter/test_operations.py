"""Operations of dbt: a view of the engine's, and what a failing service means to the node whose hook runs it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.errors import ConfigError, HudiError, ServiceError
from hudi_engine.table.operations import OPERATIONS
from jinja2 import Undefined

from dbt.adapters.hudi import operations
from dbt.adapters.hudi.operations import Operations

STRICT_KEY = "hoodie.engine.services.strict"
STRICT, TEXT = {STRICT_KEY: True}, {STRICT_KEY: "True"}
MACROS = Path(__file__).resolve().parents[3] / "dbt/include/hudi/macros"
CALLS = re.findall(
    r"macro hudi_(\w+)\((.*?)\) %}\n(?:  {#-.*?-#}\n)?  {% do hudi__run\('(\w+)', {(.*?)}, kwargs\) %}",
    "".join(path.read_text(encoding="utf-8") for path in sorted(MACROS.rglob("*.sql"))),
)


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Any:
    """An adapter with a table whose compaction fails, in the hook of a node."""
    found = Operations()
    found.config = SimpleNamespace(credentials=SimpleNamespace(schema="analytics"))
    warehouse = SimpleNamespace(
        one_writer=lambda *place: nullcontext(), options_of=lambda *name: {}, show=lambda *_: None
    )
    table = SimpleNamespace(path="/base", services=lambda options: SimpleNamespace(compact=failing(options)))
    found.connections = SimpleNamespace(warehouse=warehouse)  # type: ignore[assignment]

    @contextmanager
    def opened(*arguments: Any) -> Iterator[tuple[Any, Any]]:
        yield None, table

    monkeypatch.setattr(found, "_table", opened)
    monkeypatch.setattr(operations, "get_node_info", lambda: {"unique_id": "model.shop.orders"})
    return found


def failing(options: dict[str, str]) -> Any:
    def compact(instant: str | None) -> None:
        raise ConfigError("no such option") if "hoodie.no.such" in options else ServiceError("disk full")

    return compact


def run(adapter: Any, name: str = "compact", table: Any = "orders", **given: Any) -> str:
    return "\n".join(adapter.hudi_operation(name, {"table": table}, given))


@pytest.mark.parametrize(("macro", "signature", "name", "passed"), CALLS)
def test_a_macro_passes_what_its_operation_takes(macro: str, signature: str, name: str, passed: str) -> None:
    own = operations._OWN.get(name)
    operation = own or OPERATIONS[name.removeprefix("show_")]
    assert macro == name
    declared = dict(each.partition("=")[::2] for each in signature.split(", "))
    assert passed == ", ".join(f"'{each}': {each}" for each in declared)
    options = [] if own else ["options"]
    assert sorted(declared) == sorted([*operation.names, *options])
    for argument in operation.arguments.values():
        default = "" if argument.is_required else repr(argument.default).lower()
        assert declared[argument.name] == default


@pytest.mark.parametrize("empty", [None, "", []])
def test_arguments_of_a_query_are_not_checked_while_dbt_parses(empty: Any) -> None:
    checked = operations._checked
    assert checked("delete_partitions", {"table": "orders", "partitions": empty}, {}) == []
    assert checked("clean", {"table": "orders", "retain_commits": empty}, {}) == []
    with pytest.raises(DbtRuntimeError, match="retain_commits is 'few'"):
        checked("clean", {"table": "orders", "retain_commits": "few"}, {})
    with pytest.raises(DbtRuntimeError, match="has no argument 'partitons'"):
        checked("clean", {"table": "orders"}, {"partitons": ["a"]})


def test_every_operation_has_a_macro() -> None:
    without = {"compactions", "clusterings"}  # op='show' of hudi_compact and hudi_cluster
    assert {name.removeprefix("show_") for _, _, name, _ in CALLS} == {
        *OPERATIONS,
        *operations._OWN,
    } - without


def test_failing_service_of_a_hook_is_a_warning(adapter: Any) -> None:
    assert run(adapter) == "compact of orders: FAILED: ServiceError: disk full"


@pytest.mark.parametrize(
    ("of_profile", "options"),
    [({}, STRICT), (TEXT, {}), ({STRICT_KEY: "false"}, TEXT), ({}, {"hoodie.no.such": 1})],
)
def test_strict_or_illegal_service_call_fails_the_node(adapter: Any, of_profile: Any, options: Any) -> None:
    adapter.connections.warehouse.options_of = lambda *name: of_profile
    with pytest.raises(HudiError):
        run(adapter, options=options)


def test_a_hook_may_be_less_strict_than_the_profile(adapter: Any) -> None:
    adapter.connections.warehouse.options_of = lambda *name: TEXT
    assert "FAILED" in run(adapter, options={STRICT_KEY: False})


def test_unknown_options_fail_the_node(adapter: Any) -> None:
    with pytest.raises(DbtRuntimeError, match="option 'wrong'"):
        run(adapter, options={"wrong": 1})


def test_failing_operation_raises(adapter: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "get_node_info", dict)
    with pytest.raises(ServiceError, match="disk full"):
        run(adapter)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "give the name of a Hudi table"),
        (5, "give the name of a Hudi table"),
        (None, "hudi_compact needs table, .* its arguments: table, op, instant, options"),
        (Undefined(), "hudi_compact needs table, and got none or a name that nothing defines"),
    ],
)
def test_a_table_without_a_name_is_refused(adapter: Any, table: Any, message: str) -> None:
    with pytest.raises(DbtRuntimeError, match=message):
        run(adapter, table=table)


def test_retain_commits_with_another_policy_is_refused(adapter: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"retain_commits is 3.*hoodie.cleaner.policy: KEEP_LATEST_BY_HOURS"
    ):
        run(adapter, "clean", retain_commits=3, options={"hoodie.cleaner.policy": "KEEP_LATEST_BY_HOURS"})


def test_arguments_are_checked_while_dbt_parses() -> None:
    check = Operations._parse_replacements_["hudi_operation"]
    assert check("clean", {"table": "orders", "retain_commits": "3"}, {}) == []
    with pytest.raises(DbtRuntimeError, match="hudi_clean has no argument 'retain'"):
        check("clean", {"table": "orders"}, {"retain": 3})
    with pytest.raises(DbtRuntimeError, match="op is 'foo'; legal values: run, schedule, show"):
        check("compact", {"table": "orders", "op": "foo"}, {})

"""What a table service that fails means to the node whose hook asked for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.errors import ConfigError, HudiError, ServiceError

from dbt.adapters.hudi import table_services
from dbt.adapters.hudi.spark.node_options import NodeOptions
from dbt.adapters.hudi.table_services import TableServiceMethods

STRICT_KEY = "hoodie.engine.services.strict"
STRICT, TEXT = {STRICT_KEY: True}, {STRICT_KEY: "True"}


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Services of a table whose compaction fails, asked for by the hook of a node."""
    found = TableServiceMethods()
    found.config = SimpleNamespace(credentials=SimpleNamespace(schema="analytics"))
    warehouse = SimpleNamespace(one_writer=lambda *place: nullcontext(), node=NodeOptions({}))
    table = SimpleNamespace(path="/base", compact=failing)
    found.connections = SimpleNamespace(warehouse=warehouse)  # type: ignore[assignment]

    @contextmanager
    def opened(*arguments: Any) -> Iterator[tuple[Any, Any]]:
        yield None, table

    monkeypatch.setattr(found, "_table", opened)
    monkeypatch.setattr(table_services, "get_node_info", lambda: {"unique_id": "model.shop.orders"})
    return found


def failing(options: dict[str, str]) -> None:
    raise ConfigError("no such option") if "hoodie.no.such" in options else ServiceError("disk full")


def test_a_service_that_fails_in_a_hook_leaves_the_node_good(services: Any) -> None:
    assert str(services.hudi_compact("orders")) == "FAILED: ServiceError: disk full"


@pytest.mark.parametrize(
    ("of_profile", "options"),
    [({}, STRICT), (TEXT, {}), ({STRICT_KEY: "false"}, TEXT), ({}, {"hoodie.no.such": 1})],
)
def test_it_fails_the_node_when_asked_to_or_when_the_call_makes_no_sense(
    services: Any, of_profile: Any, options: Any
) -> None:
    services.connections.warehouse.node = NodeOptions(of_profile)
    with pytest.raises(HudiError):
        services.hudi_compact("orders", options=options)


def test_a_hook_may_be_less_strict_than_the_profile(services: Any) -> None:
    services.connections.warehouse.node = NodeOptions(TEXT)
    assert str(services.hudi_compact("orders", options={STRICT_KEY: False})).startswith("FAILED")


def test_options_that_are_none_fail_the_node(services: Any) -> None:
    with pytest.raises(DbtRuntimeError, match="option 'wrong'"):
        services.hudi_compact("orders", options={"wrong": 1})


def test_an_operation_that_fails_says_so(services: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_services, "get_node_info", dict)
    with pytest.raises(ServiceError, match="disk full"):
        services.hudi_compact("orders")


@pytest.mark.parametrize("table", ["", None, 5])
def test_a_table_without_a_name_is_refused(services: Any, table: Any) -> None:
    with pytest.raises(DbtRuntimeError, match="give the name of a Hudi table"):
        services.hudi_compact(table)


def test_commits_to_retain_beside_another_policy_are_refused(services: Any) -> None:
    with pytest.raises(
        DbtRuntimeError, match=r"retain_commits is 3.*hoodie.cleaner.policy: KEEP_LATEST_BY_HOURS"
    ):
        services.hudi_clean("orders", 3, {"hoodie.cleaner.policy": "KEEP_LATEST_BY_HOURS"})

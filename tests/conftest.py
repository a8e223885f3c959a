"""Fixtures of several tiers."""

from __future__ import annotations

import gc
import logging
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.helpers.azure_server import AzureServer
    from tests.helpers.gcs_server import GcsServer
    from tests.helpers.s3_server import S3Server

# A busy machine is slow to draw examples; that says nothing about the code under test.
settings.register_profile("shared-machine", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("shared-machine")


GATE_SHARE = {"faults": 3, "functional": 3, "judge": 2, "reliability": 2, "serve": 2, "spark": 3}
"""One test of how many the gate runs, by folder; of a sampled module one of twice as many."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the tests marked long too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long tests out unless they are wanted, and let the slow modules go first."""
    _mark_the_rest_of_samples(items)
    if not config.getoption("--long"):
        late = [item for item in items if item.get_closest_marker("long")]
        if late:
            items[:] = [item for item in items if item not in late]
            config.hook.pytest_deselected(items=late)
    # Workers end together when what takes long does not begin last.
    sizes = Counter(map(_scope, items))
    items.sort(key=lambda item: (item.get_closest_marker("slow") is None, -sizes[_scope(item)]))


def _mark_the_rest_of_samples(items: list[pytest.Item]) -> None:
    """Mark as long what the gate leaves out: of a module it runs one test or class of as many as `GATE_SHARE` says."""
    seen: dict[Path, dict[str, int]] = defaultdict(dict)
    for item in items:
        if item.get_closest_marker("long"):
            continue
        is_sampled = item.get_closest_marker("sampled") is not None
        folder = item.path.relative_to(item.config.rootpath / "tests").parts[0]
        share = GATE_SHARE.get(folder, 1)
        if is_sampled:
            share = max(3, 2 * share)
        # The tests of a class go on with one project, those of a sampled module do not need each other.
        unit = item.nodeid if is_sampled else _unit(item)
        if seen[item.path].setdefault(unit, len(seen[item.path])) % share:
            item.add_marker(pytest.mark.long)


def _unit(item: pytest.Item) -> str:
    scope = _scope(item)
    return scope if "::" in scope else item.nodeid


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over the modules, of which dbt alone has thousands of classes."""
    gc.collect()
    gc.freeze()


def _scope(item: pytest.Item) -> str:
    """The module or class that one worker runs as a whole."""
    return item.nodeid.rpartition("::")[0]


@pytest.fixture(autouse=True)
def engine_lines_are_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of the engine reach the root logger, also when a test before has loaded the adapter, which takes them over."""
    monkeypatch.setattr(logging.getLogger("hudi_engine"), "propagate", True)


@pytest.fixture(scope="module")
def s3_server() -> Iterator[S3Server]:
    """An S3 server on the loopback interface; after the module no client of this process looks for it any more."""
    # The server takes half a second to import, which the other modules need not wait for.
    from tests.helpers.s3_server import running_s3_server

    with running_s3_server() as server:
        yield server


@pytest.fixture(scope="module")
def azure_server() -> Iterator[AzureServer]:
    """A server of Azure's object store; without node and npm the tests that need it are skipped by name."""
    from tests.helpers.azure_server import running_azure_server

    with running_azure_server() as server:
        yield server


@pytest.fixture(scope="module")
def gcs_server() -> Iterator[GcsServer]:
    """A server of Google's object store; without Go the tests that need it are skipped by name."""
    from tests.helpers.gcs_server import running_gcs_server

    with running_gcs_server() as server:
        yield server

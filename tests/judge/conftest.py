"""Fixtures of the tests that independent readers and writers judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.helpers.small_session import small_session
from tests.judge import apache_hudi as harness


@pytest.fixture(scope="session")
def apache_hudi() -> Iterator[Callable[[str], harness.ApacheHudi]]:
    """Give the running Apache Hudi of a version; its process lives as long as the test session."""
    running: dict[str, harness.ApacheHudi] = {}

    def of_version(version: str) -> harness.ApacheHudi:
        if not harness.available(version):
            pytest.skip(f"LEFT OUT: Apache Hudi {version} is not set up here; run `python3 dev.py setup all`")
        if version not in running:
            running[version] = harness.ApacheHudi(version)
        return running[version]

    yield of_version
    for process in running.values():
        process.close()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The session of our engine: small and quiet, without any jar."""
    session = small_session(str(tmp_path_factory.mktemp("warehouse")))
    yield session
    session.stop()

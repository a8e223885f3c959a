"""Fixtures of several tiers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.helpers.s3_server import S3Server, running_s3_server

# A busy machine is slow to draw examples; that says nothing about the code under test.
settings.register_profile("shared-machine", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("shared-machine")


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """An S3 server on the loopback interface, started by the first test that asks for it."""
    with running_s3_server() as server:
        yield server

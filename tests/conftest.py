"""Fixtures of several tiers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers.s3_server import S3Server, running_s3_server


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """An S3 server on the loopback interface, started by the first test that asks for it."""
    with running_s3_server() as server:
        yield server

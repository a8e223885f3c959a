"""Fixtures of several tiers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.helpers.s3_server import S3Server

# A busy machine is slow to draw examples; that says nothing about the code under test.
settings.register_profile("shared-machine", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("shared-machine")


@pytest.fixture(scope="module")
def s3_server() -> Iterator[S3Server]:
    """An S3 server on the loopback interface; after the module no client of this process looks for it any more."""
    # The server takes half a second to import, which the other modules need not wait for.
    from tests.helpers.s3_server import running_s3_server

    with running_s3_server() as server:
        yield server

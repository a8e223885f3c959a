"""Eight clients of one server, one of them and the server killed: no acknowledged write is lost, no read is wrong."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.long.clients_of_a_server import run_clients


def test_killed_clients_and_servers_lose_no_acknowledged_write(tmp_path: Path) -> None:
    run = run_clients(3.0, tmp_path)
    sys.stdout.write(f"{dict(run.counts)}\n")
    assert run.counts["writes acknowledged"] > 5 and run.counts["reads"] > 10
    assert run.counts["servers killed"] == 2 and run.counts["clients killed"] >= 5
    assert run.violations == []

"""Servers that tests run as programs on the loopback interface."""

from __future__ import annotations

import socket
import subprocess
import time


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def wait_for(process: subprocess.Popen[bytes], port: int, name: str, seconds: float) -> None:
    """Wait until a program answers on its port.

    Args:
        process: The program.
        port: Its port.
        name: What to call it.
        seconds: How long to wait.
    """
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"{name} does not answer on port {port}")

"""Spark of a server, lent to this process for one command: a session of its own, in a Java that others use too."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.spark.jvm.session import attached_context, root_session
from pyspark.sql import SparkSession

from dbt.adapters.hudi.channel import ChannelError, connect, receive, send
from dbt.adapters.hudi.spark.java import connect_java

# Of these a session has its own values in any Java.
OF_SESSION = ("spark.sql.warehouse.dir", "spark.app.name")


@dataclass(frozen=True)
class SparkWanted:
    """What a Java has to be started with to do for a command.

    Args:
        conf: Settings of Spark.
        java: Path of Java.
        folder: From which relative paths in SQL count.
        log_level: Of Spark.
        java_conf: The same with what Java needs for its class archive, which another one need not have.
    """

    conf: Mapping[str, str]
    java: str
    folder: str
    log_level: str
    java_conf: Mapping[str, str]


_GIVEN_BACK_WITHIN_S = 20.0
_lender: Path | None = None
_lease: socket.socket | None = None


def lend_from(place: Path) -> None:
    """Have this process take its Spark from the server that listens at ``place``."""
    global _lender
    _lender = place


def is_lent() -> bool:
    """Whether this process takes its Spark from a server."""
    return _lender is not None


def jobs_of_process() -> str:
    """Return how the names of this process's groups of Spark jobs begin, in a Java that others may use too."""
    return f"dbt-hudi-{os.getpid()}-"


def lent_session(wanted: SparkWanted) -> tuple[SparkSession, bool]:
    """Return a session in a Java of the server, and whether Java was started for it; raises DbtRuntimeError."""
    global _lease
    assert _lender is not None
    try:
        _lease = connect(_lender)
        send(
            _lease,
            {"wanted": asdict(wanted), "environment": dict(os.environ), "group": jobs_of_process()},
        )
        answer, _ = receive(_lease)
    except (OSError, EOFError, ChannelError) as error:
        raise DbtRuntimeError(f"the server of this command gives no Spark: {error}") from error
    if "error" in answer:
        raise DbtRuntimeError(answer["error"])
    return _attached(answer, wanted), bool(answer["started"])


def give_back() -> None:
    """Leave the Spark that was lent and wait until the server has it back: the caller's next command may need its place."""
    if _lease is None:
        return
    with suppress(OSError), _lease:
        _lease.settimeout(_GIVEN_BACK_WITHIN_S)
        _lease.shutdown(socket.SHUT_WR)
        _lease.recv(1)  # nothing comes; the server closes it


def _attached(answer: Mapping[str, Any], wanted: SparkWanted) -> SparkSession:
    """Return a session in the Java that was lent."""
    # SparkContext would have Ctrl-C cancel the jobs of all commands
    in_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    context = attached_context(connect_java(answer["port"], answer["secret"]))
    if in_main:
        signal.signal(signal.SIGINT, handler)
    return root_session(context, wanted.conf)

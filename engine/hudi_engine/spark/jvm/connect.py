"""Spark's own service of Spark Connect in the Java of this process, and the sessions that it keeps."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from hudi_engine.spark.jvm.session import gateway, java_context, session_of

_TOKEN = "spark.connect.authenticate.token"
_SETTINGS = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    # who asks for a session decides how long it lives
    "spark.connect.session.manager.defaultSessionTimeout": "-1",
}
# A plan that is kept with its tables resolved shows no later commit.
_OF_SESSIONS = {"spark.connect.session.planCache.enabled": "false"}
_lock = threading.Lock()
_started: tuple[Any, ConnectService] | None = None


@dataclass(frozen=True)
class ConnectService:
    """Where the service listens, on the loopback interface only, and the token without which it answers nobody."""

    port: int
    token: str


def connect_service(session: SparkSession) -> ConnectService:
    """Return the service in the Java of a session; it is started once and runs as long as Java."""
    global _started
    with _lock:
        context = java_context(session).sc()
        if _started is not None and _started[0].equals(context):
            return _started[1]
        # every session of Spark shows its settings to clients, and so the token is among them for the start only
        conf, token = context.conf(), secrets.token_urlsafe(32)
        for key, value in {**_SETTINGS, _TOKEN: token}.items():
            conf.set(key, value)
        try:
            _packages(session).SparkConnectService.start(context)
        finally:
            conf.remove(_TOKEN)
        service = getattr(getattr(_packages(session), "SparkConnectService$"), "MODULE$")
        made = ConnectService(int(service.localPort()), token)
        _started = context, made
        return made


def connect_session(session: SparkSession, user: str, name: str) -> tuple[SparkSession, str]:
    """Return the service's session of a user by its name, which is made if need be, and the id that Spark gives it.

    Args:
        session: A session in the same Java.
        name: A UUID that the client chose.
    """
    none = gateway(session).scala.Option.apply(None)
    holder = _packages(session).SparkConnectService.getOrCreateIsolatedSession(user, name, none)
    made = session_of(session, holder.session())
    for key, value in _OF_SESSIONS.items():
        made.conf.set(key, value)
    return made, str(holder.serverSessionId())


def _packages(session: SparkSession) -> Any:
    return gateway(session).org.apache.spark.sql.connect.service

"""The Java processes of a server, each with one Spark, lent to the processes that run commands."""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbt_common.exceptions import DbtBaseException, DbtRuntimeError
from hudi_engine.spark.jvm.errors import call_errors, java_message
from hudi_engine.spark.jvm.session import Door

from dbt.adapters.hudi.channel import SPARK, ChannelError, check_peer, listen, receive, send
from dbt.adapters.hudi.spark.java import end_java, start_java
from dbt.adapters.hudi.spark.lent import OF_SESSION, SparkWanted

# What Java, Spark and the stores read of the environment when Java starts.
_READ_BY_JAVA = re.compile(
    r"(JAVA|JDK_JAVA|_JAVA|SPARK|HADOOP|YARN|HIVE|PYSPARK|PYTHON|AWS|AZURE|GOOGLE|KRB5|LD|DYLD|LC)_?\w*"
    r"|TZ|LANG|HOME|USER|\w+_proxy",
    re.IGNORECASE,
)


# These PySpark itself puts into the environment.
_OF_PYSPARK = ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")
# PySpark's own defaults of a context.
_DEFAULTS = {"spark.serializer.objectStreamReset": "100", "spark.rdd.compress": "True"}


class AllBusy(Exception):
    """Every Java that the server may have is in use, and none of them is as a command needs it."""


@dataclass(eq=False)
class WarmJava:
    """A Java with Spark.

    Args:
        key: What it was started with, by name.
        gateway: The connection to it.
        context: Its JavaSparkContext.
        is_own: Whether it may be ended here; one that serves clients may not.
    """

    key: Mapping[str, str]
    gateway: Any
    context: Any
    is_own: bool = True
    leases: int = 0
    used: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._kept = self.gateway.jvm.java.util.concurrent.ConcurrentHashMap()

    def is_alive(self) -> bool:
        """Whether Java runs, and Spark in it."""
        process = getattr(self.gateway, "proc", None)
        if process is not None and process.poll() is not None:
            return False
        try:
            return not self.context.sc().isStopped()
        except call_errors():
            return False

    def open_door(self) -> Door:
        """Let a process in."""
        return Door(self.gateway.jvm, self.context, self._kept)

    def end(self) -> None:
        """End Spark and Java."""
        with suppress(*call_errors()):
            self.context.stop()
        end_java(self.gateway)


class Sparks:
    """Lends sessions; a command whose settings fit no running Java has another one started.

    Args:
        most: Java processes at a time; the one that was not used for longest ends when another is needed.
        log: Takes a line about a start and an end.
    """

    def __init__(self, folder: Path, most: int, log: Callable[[str], None]) -> None:
        self._most, self._log = most, log
        self._javas: list[WarmJava] = []
        self._lock = threading.Lock()
        self._place = folder / SPARK
        self._listener = listen(self._place)

    def start(self) -> None:
        """Lend from now on."""
        threading.Thread(target=self._listen, name="spark's door", daemon=True).start()

    def adopt(self, wanted: SparkWanted, gateway: Any, context: Any) -> None:
        """Lend a Java too that the server needs itself."""
        with self._lock:
            self._javas.append(WarmJava(key_of(wanted, os.environ), gateway, context, is_own=False))

    def stop(self) -> None:
        """End all that was started."""
        self._place.unlink(missing_ok=True)
        self._listener.close()
        with self._lock:
            self._forget_dead()
            for each in self._javas:
                if each.is_own:
                    each.end()
            self._javas.clear()

    def end_idle(self) -> int:
        """End the Java processes that no command uses, and return how many they were."""
        with self._lock:
            self._forget_dead()
            idle = [each for each in self._javas if each.is_own and not each.leases]
            for each in idle:
                self._javas.remove(each)
                each.end()
        return len(idle)

    def _forget_dead(self) -> None:
        for dead in [each for each in self._javas if not each.is_alive()]:
            self._javas.remove(dead)
            self._log(f"Java {dead.gateway.proc.pid} or its Spark has ended by itself")
            if dead.is_own:
                dead.end()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), name="lease", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """Lend a session for as long as the other process holds its connection."""
        with connection, suppress(OSError, EOFError, ChannelError):
            check_peer(connection)
            request, _ = receive(connection)
            if request.get("end_idle"):
                send(connection, {"ended": self.end_idle()})
                return
            wanted = SparkWanted(**request["wanted"])
            try:
                java, started = self._take(wanted, request["environment"])
            except (AllBusy, DbtBaseException) as error:
                send(connection, {"error": str(getattr(error, "msg", error))})
                return
            try:
                self._lend(connection, java, str(request["group"]), started=started)
            finally:
                with self._lock:
                    java.leases -= 1
                    java.used = time.monotonic()

    def _lend(self, connection: socket.socket, java: WarmJava, group: str, *, started: bool) -> None:
        try:
            door = java.open_door()
            try:
                send(connection, {"port": door.port, "secret": door.secret, "started": started})
                connection.recv(1)  # nothing comes; it ends with the process
            finally:
                door.close(group)
        except call_errors() as error:
            self._log(f"Java {java.gateway.proc.pid} does not answer any more: {type(error).__name__}")

    def _take(self, wanted: SparkWanted, environment: Mapping[str, str]) -> tuple[WarmJava, bool]:
        """Return a Java that fits, with a lease of it counted, and whether it was started for this."""
        key = key_of(wanted, environment)
        with self._lock:
            self._forget_dead()
            for java in self._javas:
                if java.key == key:
                    java.leases += 1
                    return java, False
            self._make_room(key)
            java = WarmJava(key, *_started(wanted, environment), leases=1)
            self._log(f"started Java {java.gateway.proc.pid} for {wanted.folder}")
            self._javas.append(java)
            return java, True

    def _make_room(self, key: Mapping[str, str]) -> None:
        if len(self._javas) < self._most:
            return
        idle = [each for each in self._javas if each.is_own and not each.leases]
        if not idle:
            others = "; ".join(differences(each.key, key) for each in self._javas)
            raise AllBusy(
                f"this command needs a Spark of its own, and the server has {self._most}, the most it may, all in use, which "
                f"differ in {others}. Wait until one is free, or start the server with a larger --max-sparks"
            )
        oldest = min(idle, key=lambda each: each.used)
        self._javas.remove(oldest)
        self._log(f"ended Java {oldest.gateway.proc.pid}, which was not used for longest")
        oldest.end()


def key_of(wanted: SparkWanted, environment: Mapping[str, str]) -> dict[str, str]:
    """Return all by which one Java does in another command's place."""
    of_environment = {
        f"${name}": value
        for name, value in environment.items()
        if _READ_BY_JAVA.fullmatch(name) and name not in _OF_PYSPARK
    }
    conf = {key: value for key, value in wanted.conf.items() if key not in OF_SESSION}
    return {
        **of_environment,
        **conf,
        "the project's folder": os.path.realpath(wanted.folder),
        "Java": wanted.java,
        "log_level": wanted.log_level,
    }


def differences(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """Return the names of what differs; values may be secrets."""
    return ", ".join(sorted(name for name in {*one, *other} if one.get(name) != other.get(name)))


def _started(wanted: SparkWanted, environment: Mapping[str, str]) -> tuple[Any, Any]:
    """Start Java and Spark as the process would that asks for them; returns connection and context."""
    gateway = start_java(wanted.java_conf, wanted.folder, environment)
    try:
        conf = gateway.jvm.SparkConf()
        for key, value in _DEFAULTS.items():
            conf.setIfMissing(key, value)
        context = gateway.jvm.JavaSparkContext(conf)
        context.setLogLevel(wanted.log_level)
    except call_errors() as error:
        reason = java_message(error) or error  # while Java can still be asked
        end_java(gateway)
        raise DbtRuntimeError(f"Spark did not start: {reason}") from error
    return gateway, context

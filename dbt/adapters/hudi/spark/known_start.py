"""How Spark's script called Java, kept in the user's cache, with which Java starts without the script.

``bin/spark-submit`` runs two shells and a Java of its own to find out how Java is to be called, a fifth of a second of each
start. What comes of it follows from the settings, the environment and Spark's files, which the file's name tells; whatever is
other than it was, goes through the script. No run depends on it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

from hudi_engine.format.storage.redact import is_secret
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer

from dbt.adapters.hudi.logs import logger

_MAIN = "org.apache.spark.deploy.SparkSubmit"
_TOLD_IN = "_PYSPARK_DRIVER_CONN_INFO_PATH"
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
# With these PySpark gives the script more than the settings.
_MORE_ARGUMENTS = ("PYSPARK_SUBMIT_ARGS", "SPARK_TESTING")
_OF_THE_START = ("SPARK_", "PYSPARK_", "HADOOP_", "YARN_", "JAVA_", "JDK_", "_JAVA", "LD_", "DYLD_")
_OF_A_SHELL = ("_", "SHLVL", "PWD", "OLDPWD", _TOLD_IN)
_LOOK_EVERY_S = 0.01
# starts Java through the script
_gateway: Callable[..., Any] = launch_gateway
_Text: Any = UTF8Deserializer


@dataclass(frozen=True)
class _Start:
    """What the script made of the settings.

    Args:
        command: Java and its options, up to the class it runs.
    """

    command: list[str]
    environment: dict[str, str]


class KnownStart:
    """What is known of a start with some settings.

    Args:
        folder: A folder that nobody else can write to.
        java: Names the Java, Spark and their files.
    """

    def __init__(self, folder: Path, java: str, conf: Mapping[str, str]) -> None:
        told = {name: value for name, value in os.environ.items() if name.startswith(_OF_THE_START)}
        whole = json.dumps([java, sorted(conf.items()), sorted(told.items())])
        self.path = folder / f"start-{hashlib.sha256(whole.encode()).hexdigest()[:32]}.json"

    def read(self) -> _Start | None:
        """Return what the script made of the settings; None when it is not known."""
        try:
            found = json.loads(self.path.read_text("utf-8"))
            os.utime(self.path)
            return _Start([*map(str, found["command"])], {**found["environment"]})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def keep(self, process: int, before: Mapping[str, str]) -> None:
        """Keep how a Java was started, where the system tells it.

        Args:
            before: The environment in which the script was called.
        """
        try:
            words = _words(Path(f"/proc/{process}/cmdline"))
            place = words.index(_MAIN)
            variables = dict(each.split("=", 1) for each in _words(Path(f"/proc/{process}/environ")))
            made = {
                name: value
                for name, value in variables.items()
                if before.get(name) != value and name not in _OF_A_SHELL
            }
            if _tells_secrets(words[:place]):
                return
            # whole or not at all, as another start may be reading it
            written = self.path.with_suffix(f".{os.getpid()}")
            written.touch(0o600)
            written.write_text(json.dumps({"command": words[:place], "environment": made}), "utf-8")
            written.replace(self.path)
        except (OSError, ValueError) as error:
            logger.debug("how Java was started is not kept: {}", str(error))

    def forget(self) -> None:
        """Let the next start go through the script."""
        with suppress(OSError):
            self.path.unlink()


def launch(settings: SparkConf, options: dict[str, Any], known: KnownStart | None) -> Any:
    """Start Spark's Java and return the way to it, as `pyspark.java_gateway.launch_gateway` does.

    Args:
        options: How the process is made, see `subprocess.Popen`.
        known: What is known of such a start; None goes through the script and keeps nothing.

    Raises:
        PySparkException: Java did not come up.
    """
    if known is None or any(os.environ.get(name) for name in _MORE_ARGUMENTS):
        return _gateway(settings, options)
    start = known.read()
    if start is not None:
        gateway = _launched(start, settings, options)
        if gateway is not None:
            return gateway
        known.forget()
    before = dict(os.environ)
    gateway = _gateway(settings, dict(options))
    known.keep(gateway.proc.pid, before)
    return gateway


def _launched(start: _Start, settings: SparkConf, options: dict[str, Any]) -> Any | None:
    """Start Java as the script did; None when it does not come up."""
    arguments = [word for key, value in settings.getAll() for word in ("--conf", f"{key}={value}")]
    folder = tempfile.mkdtemp()
    told = Path(folder) / "told"
    try:
        process = subprocess.Popen(
            [*start.command, _MAIN, *arguments, "pyspark-shell"],
            **options,
            stdin=subprocess.PIPE,  # Java ends with it
            env={**os.environ, **start.environment, _TOLD_IN: str(told)},
            preexec_fn=_leave_interrupts,
        )
        while process.poll() is None and not told.is_file():
            time.sleep(_LOOK_EVERY_S)
        if not told.is_file():
            return None
        with told.open("rb") as file:
            port, secret = int.from_bytes(file.read(4), "big"), _Text().loads(file)
    except OSError as error:
        logger.debug("Java did not start as it did before: {}", str(error))
        return None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    gateway = _connected(settings, {_PORT: str(port), _SECRET: secret})
    gateway.proc = process
    return gateway


def _connected(settings: SparkConf, told: Mapping[str, str]) -> Any:
    """Return the way to a Java that runs.

    PySpark looks into the environment for it. Variables that come there and go would end a thread that lists them meanwhile, as
    dbt's do while they parse, and other processes would get them; so PySpark's function is given an environment of its own.
    """
    own = SimpleNamespace(**vars(os))
    own.environ = {**os.environ, **told}
    seen = {**launch_gateway.__globals__, "os": own}
    connect: Callable[..., Any] = FunctionType(
        launch_gateway.__code__, seen, argdefs=launch_gateway.__defaults__
    )
    return connect(settings)


def _leave_interrupts() -> None:
    """Leave an interruption of the terminal to dbt, which ends Java in order."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _words(path: Path) -> list[str]:
    return [os.fsdecode(each) for each in path.read_bytes().split(b"\0") if each]


def _tells_secrets(command: Iterable[str]) -> bool:
    return any(is_secret(word.partition("=")[0]) for word in command if "=" in word)

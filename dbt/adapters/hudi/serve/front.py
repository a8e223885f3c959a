"""The process of a server that takes commands: each runs in a copy of it, with the caller's folder, environment and files.

It has loaded dbt and the adapter and has no threads, so that a copy (`fork`) is there in milliseconds and nothing of one
command is left for the next.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from dbt.adapters.hudi.channel import COMMANDS, SPARK, ChannelError, check_peer, listen, receive, send
from dbt.adapters.hudi.spark.lent import give_back, lend_from

_LOOK_EVERY_S = 1.0
_SENT_WITHIN_S = 10.0
# A process without a caller that ends no more, as it waits for what does not come, must not keep its Spark.
_ENDS_WITHIN_S = 300.0
# What dbt and the adapter load when it is first needed.
_NEEDED_LATER = (
    "dbt.cli.main",
    "agate",
    "dbt_common.clients.agate_helper",
    "pandas",
    "pyarrow.acero",
    "sqlparse",
)
_FAILED = 2
Run = Callable[[list[str]], int]


class Front:
    """Takes commands until it is idle for too long, or its server has gone.

    Args:
        run: Runs the words of a command and returns its exit code.
        server: A pipe that ends with the server.
        idle_s: Seconds without a command after which it ends; None for never.
        grace_s: Seconds that running commands have to end in order.
    """

    def __init__(self, folder: Path, run: Run, server: int, idle_s: float | None, grace_s: float) -> None:
        self._folder, self._run, self._server = folder, run, server
        self._idle_s, self._grace_s = idle_s, grace_s
        self._running: set[int] = set()
        self._is_left = False
        self._used = time.monotonic()

    def serve(self) -> None:
        """Take commands; in the copies this ends the process."""
        listener = listen(self._folder / COMMANDS)
        goes_on = True
        while goes_on and not self._is_idle():
            goes_on = self._look(listener, _LOOK_EVERY_S)
        (self._folder / COMMANDS).unlink(missing_ok=True)
        # a command that has connected meanwhile still runs
        while goes_on and self._look(listener, 0.0) and self._running:
            time.sleep(0.1)
        listener.close()
        self._end_running()

    def _look(self, listener: socket.socket, within_s: float) -> bool:
        """Take a command that comes within some seconds; returns False when the server is to end."""
        ready, _, _ = select.select([listener, self._server], [], [], within_s)
        self._reap()
        if self._server in ready:
            return False
        return listener not in ready or not self._begin(listener.accept()[0], listener)

    def _begin(self, connection: socket.socket, listener: socket.socket) -> bool:
        """Start a copy for a connection; returns whether the server is asked to end."""
        with connection:
            connection.settimeout(_SENT_WITHIN_S)
            files: list[int] = []
            try:
                check_peer(connection)
                request, files = receive(connection)
                connection.settimeout(None)
                if "end" in request:
                    self._is_left = True
                    send(connection, {"process": os.getppid()})
                    return bool(request["end"] == "all")
                copy = os.fork()
                if copy == 0:
                    try:
                        listener.close()
                        os.close(self._server)
                        run_as_caller(connection, request, files, self._run, self._folder)
                    except Exception:
                        os._exit(_FAILED)  # it must never take commands itself
                self._running.add(copy)
                self._is_left = False
            except (OSError, EOFError, ChannelError, ValueError):
                pass  # whoever it was has gone, or sent what is no command
            finally:
                for each in files:
                    os.close(each)
        return False

    def _reap(self) -> None:
        while self._running:
            ended, _ = os.waitpid(-1, os.WNOHANG)
            if ended == 0:
                return
            self._running.discard(ended)
            self._used = time.monotonic()

    def _is_idle(self) -> bool:
        if self._running:
            return False
        # the folder goes with a login session: no command can come any more
        if self._is_left or not (self._folder / COMMANDS).exists():
            return True
        return self._idle_s is not None and time.monotonic() - self._used > self._idle_s

    def _end_running(self) -> None:
        """End the running commands as Ctrl-C does, those that take too long at once."""
        self._signal(signal.SIGTERM)
        until = time.monotonic() + self._grace_s
        while self._running and time.monotonic() < until:
            self._reap()
            time.sleep(0.1)
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        for each in self._running:
            with suppress(ProcessLookupError):
                os.kill(each, number)


def start_front(folder: Path, run: Run, idle_s: float | None, grace_s: float) -> tuple[int, int]:
    """Start the process that takes commands; returns its id, and the pipe that ends it when it is closed."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(writing)
        # not of the terminal: each command gets its caller's signals from its caller
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        _load()
        Front(folder, run, reading, idle_s, grace_s).serve()
        os._exit(0)
    os.close(reading)
    return process, writing


def _load() -> None:
    """Load all that commands need, so that no copy has to."""
    for name in _NEEDED_LATER:
        with suppress(ImportError):
            import_module(name)
    import_module("dbt.adapters.hudi.plugin")
    import_module("pyarrow").scalar(0)
    gc.collect()
    gc.freeze()


def run_as_caller(
    connection: socket.socket, request: Mapping[str, Any], files: list[int], run: Run, folder: Path
) -> None:
    """Run a command in this process as its caller would, and end the process; the caller gets the exit code."""
    code, ended = _FAILED, threading.Event()
    try:
        _become(request, files)
        lend_from(folder / SPARK)
        threading.Thread(target=_follow, args=(connection, ended), name="caller", daemon=True).start()
        code = run(list(request["words"]))
    except SystemExit as end:
        code = _code_of(end)
    except KeyboardInterrupt:
        code = _FAILED
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    ended.set()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    give_back()
    with suppress(OSError):
        send(connection, {"code": code})
    sys.exit(code)


def _code_of(end: SystemExit) -> int:
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code
    sys.stderr.write(f"{end.code}\n")
    return 1


def _become(request: Mapping[str, Any], files: list[int]) -> None:
    """Take over what a process has of its caller: open files, folder, environment, path of modules, time zone, signals."""
    for number in range(len(files)):
        each = files.pop(0)
        os.dup2(each, number)
        os.close(each)
    names, modes = ("stdin", "stdout", "stderr"), ("r", "w", "w")
    for number, (name, mode, (encoding, errors)) in enumerate(
        zip(names, modes, request["streams"], strict=True)
    ):
        stream = open(  # noqa: SIM115
            number, mode, encoding=encoding, errors=errors, buffering=1 if mode == "w" else -1, closefd=False
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.umask(request["umask"])
    _take_path(os.environ.get("PYTHONPATH"), request["environment"].get("PYTHONPATH"))
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["folder"])
    # under this name the adapter has signals end a run in order, and errors name the program
    sys.argv = ["dbt", *request["words"]]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


def _take_path(own: str | None, given: str | None) -> None:
    """Look for modules where the caller would."""
    if own == given:
        return
    for each in (own or "").split(os.pathsep):
        if each in sys.path:
            sys.path.remove(each)
    sys.path[1:1] = [each for each in (given or "").split(os.pathsep) if each]


def _follow(connection: socket.socket, ended: threading.Event) -> None:
    """Pass the caller's signals on until the command has ended; when the caller has gone before, end in order."""
    first = threading.main_thread().ident or 0
    with suppress(OSError):
        while given := connection.recv(1):
            if not ended.is_set():
                signal.pthread_kill(first, given[0])
    if not ended.is_set():
        signal.pthread_kill(first, signal.SIGTERM)
    time.sleep(_ENDS_WITHIN_S)
    os.kill(os.getpid(), signal.SIGKILL)

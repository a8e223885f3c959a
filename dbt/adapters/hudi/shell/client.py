"""The command ``dbt-hudi``: hands its words to the server of this user, which runs them in a warm process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dbt.adapters.hudi.channel import COMMANDS, ChannelError, connect, receive, send, server_folder

START, END = "--start", "--end"
IDLE_S = 900
LOG = "log"
_FAILED = 2
_STARTED_WITHIN_S = 600.0
_LOOK_EVERY_S = 0.05
# Commands that dbt does not have, which run here where no server is.
_ANYWHERE = ("plan", "runs", "undo", "show-config")
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_HELP = """\
usage: dbt-hudi [--start] COMMAND ...

A command of dbt (run, build, test, seed, snapshot, show, compile, ls, run-operation, docs generate, ...) runs in the server of
this user, which keeps dbt and Spark up: a command takes only what its models take. --start starts one, which ends when no
command has come for {minutes} minutes. More than dbt's own are:

  serve        a server, for commands and for clients of HiveServer2; serve --end ends it
  shell        commands at a prompt, or from standard input, one a line; more options go to every command
  plan         what a run would write
  runs, undo   the dbt runs that tables know of, and taking one back
  show-config  what a model is built with

Each has a --help of its own.
"""
_NO_SERVER = """\
dbt-hudi {word}: no server runs that could take the command. Start one, in another terminal: dbt-hudi serve
or with the command, for as long as commands come: dbt-hudi {start} {words}
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line in the server, or here where it needs none; returns its exit code, 2 when no server can take it."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if words == ["serve", END]:
            ended = end_server(server_folder())
            sys.stdout.write(
                "no server runs\n" if ended is None else f"the server with process id {ended} ends\n"
            )
            return 0
        if words and words[0] == "shell":
            session: Any = import_module("dbt.adapters.hudi.shell.session")
            return int(session.Shell(words[1:]).run(sys.stdin))
        if words and words[0] == "serve":
            return _run_here(words)
        start = START in words
        if start:
            words.remove(START)
        if not words or words[0] in ("-h", "--help", "--version"):
            sys.stdout.write(_versions() if words == ["--version"] else _HELP.format(minutes=IDLE_S // 60))
            return 0 if words else _FAILED
        connection = _connection(server_folder(), start=start)
        if connection is None and words[0] in _ANYWHERE:
            return _run_here(words)
        if connection is None:
            sys.stderr.write(_NO_SERVER.format(word=words[0], start=START, words=" ".join(words)))
            return _FAILED
        with connection:
            return run_in(connection, words)
    except ChannelError as error:
        sys.stderr.write(f"dbt-hudi: {error}\n")
        return _FAILED
    except KeyboardInterrupt:
        return _FAILED


def _versions() -> str:
    names = ("dbt-hudi", "dbt-core", "dbt-spark", "pyspark")
    return ", ".join(f"{each} {version(each)}" for each in names) + "\n"


def run_in(connection: socket.socket, words: Sequence[str]) -> int:
    """Run a command in a server, with this process's folder, environment and open files; returns its exit code."""
    umask = os.umask(0o77)
    os.umask(umask)
    request = {
        "words": list(words),
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "umask": umask,
        "streams": [
            (getattr(each, "encoding", None) or "utf-8", getattr(each, "errors", None) or "strict")
            for each in (sys.stdin, sys.stdout, sys.stderr)
        ],
    }
    # one that is ignored here, as by nohup, is to be ignored there too
    before = {
        each: signal.signal(each, lambda number, _: _pass_on(connection, number))
        for each in _PASSED_ON
        if signal.getsignal(each) is not signal.SIG_IGN
    }
    try:
        send(connection, request, tuple(map(_open_file, range(3))))
        answer, _ = receive(connection)
        return int(answer["code"])
    except (EOFError, OSError):
        sys.stderr.write(
            f"dbt-hudi {words[0]}: its process in the server has ended without an exit code, as one that is killed does\n"
        )
        return _FAILED
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _pass_on(connection: socket.socket, number: int) -> None:
    try:
        connection.send(bytes([number]))
    except OSError:
        pass  # the command has ended


def _open_file(number: int) -> int:
    try:
        os.fstat(number)
    except OSError:
        return os.open(os.devnull, os.O_RDWR)
    return number


def _connection(folder: Path, *, start: bool) -> socket.socket | None:
    """Return a connection to the server; None where none runs and none is to be started."""
    try:
        return connect(folder / COMMANDS)
    except OSError:
        return start_server(folder) if start else None


def start_server(folder: Path, idle_s: float = IDLE_S) -> socket.socket:
    """Start a server that takes commands, and ends when none has come for ``idle_s`` seconds; returns a connection to it."""
    words = ["serve", "--only-commands", "--end-after", str(idle_s)]
    log = folder / LOG
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "dbt.adapters.hudi.shell", *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    finally:
        os.close(file)
    until = time.monotonic() + _STARTED_WITHIN_S
    while time.monotonic() < until:
        # one that another command has started meanwhile will do
        ended = process.poll() is not None
        try:
            return connect(folder / COMMANDS)
        except OSError:
            if ended:
                break
        time.sleep(_LOOK_EVERY_S)
    raise ChannelError(
        f"the server did not start; {log} has: {log.read_text(errors='replace')[-2000:].strip()}"
    )


def end_server(folder: Path, *, when_unused: bool = False) -> int | None:
    """End the server and what runs in it, in order, or ``when_unused``: when nothing runs in it.

    Returns its process id; None when no server runs.
    """
    try:
        with connect(folder / COMMANDS) as connection:
            send(connection, {"end": "when unused" if when_unused else "all"})
            answer, _ = receive(connection)
    except (OSError, EOFError):
        return None
    return int(answer["process"])


def _run_here(words: Sequence[str]) -> int:
    """Run a command in this process, which takes dbt's and Spark's time to load."""
    here: Any = import_module("dbt.adapters.hudi.shell.here")
    return int(here.main(list(words)))

"""The command line of the server: which warehouse, where it listens, and its end in order."""

from __future__ import annotations

import argparse
import fcntl
import getpass
import logging
import os
import signal
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from dbt.cli.resolvers import default_profiles_dir
from dbt.config.runtime import load_profile
from dbt.flags import set_from_args
from dbt_common.events.base_types import EventLevel
from dbt_common.events.event_manager_client import add_logger_to_manager, cleanup_event_logger
from dbt_common.events.logger import LineFormat, LoggerConfig
from dbt_common.exceptions import DbtBaseException
from hudi_engine.errors import ConfigError
from hudi_engine.server.limits import ServerLimits
from hudi_engine.server.passwords import Passwords, add_user
from hudi_engine.server.server import HudiServer, ServerOptions, check_options
from hudi_engine.spark.jvm.session import is_running, java_context, java_gateway

from dbt.adapters.hudi.channel import COMMANDS, ChannelError, connect, server_folder
from dbt.adapters.hudi.credentials import DEFAULT_WAREHOUSE, HudiCredentials
from dbt.adapters.hudi.serve.front import Run, start_front
from dbt.adapters.hudi.serve.sparks import Sparks
from dbt.adapters.hudi.serve.warehouse import Served, ServedWarehouse
from dbt.adapters.hudi.spark.session import leave_spark, started_spark

_SCHEMA = "default"
_PROJECT = "dbt_project.yml"
_PASSWORD_LENGTH = 8
_DEFAULTS = ServerOptions()
_LIMITS = _DEFAULTS.limits
_FRONT_ENDS_WITHIN_S = 5.0
_LEFT_WITHIN_S = 120.0
_LOOK_EVERY_S = 0.1
_SPARK_LOOK_S = 5.0
_COMMANDS_TAKEN = "  commands   dbt-hudi run, dbt-hudi build, ... in any project of this user"
_ABOUT = """\
Hudi tables for every client of HiveServer2: beeline, dbt-spark, Superset, Metabase, Tableau, DBeaver. Statements on Hudi
tables run in the engine, everything else in Spark. On the loopback interface everyone is let in unless --auth is given;
beyond it --auth is required, with or without --tls.
"""


def main(arguments: Sequence[str], run: Run) -> int:
    """Run the server until a signal ends it; returns 1 for what cannot be served.

    Args:
        run: Runs a command that is handed to the server, in a process of its own.
    """
    options = command_parser().parse_args(arguments)
    try:
        if options.add_user:
            return _add_user(options)
        _check_commands(options)
        settings = server_options(options)
        warehouse = None if options.only_commands else _warehouse(options)
        return _serve(warehouse, settings, Commands.take(options, run))
    except (ChannelError, ConfigError, DbtBaseException) as error:
        _say(f"error: {getattr(error, 'msg', error)}", sys.stderr)
        return 1


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="dbt-hudi serve", epilog=_ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    of_tables = parser.add_argument_group("which tables")
    of_tables.add_argument(
        "--warehouse", metavar="DIR", help=f"folder or URI of the tables (default {DEFAULT_WAREHOUSE})"
    )
    of_tables.add_argument(
        "--profile", metavar="NAME", help="a profile of dbt instead; in a dbt project its own"
    )
    of_tables.add_argument("--target", metavar="NAME", help="a target of that profile")
    of_tables.add_argument("--profiles-dir", metavar="DIR", help="folder of profiles.yml")
    of_tables.add_argument(
        "--conf", metavar="KEY=VALUE", action="append", default=[], help="a setting of Spark; may be repeated"
    )
    of_clients = parser.add_argument_group("who may connect, and where")
    of_clients.add_argument(
        "--host", default=_DEFAULTS.host, help=f"address to listen on (default {_DEFAULTS.host})"
    )
    of_clients.add_argument(
        "--port", type=int, default=_DEFAULTS.port, help=f"0 for any (default {_DEFAULTS.port})"
    )
    of_clients.add_argument(
        "--connect-port",
        type=int,
        metavar="PORT",
        help="speak Spark Connect there too, 0 for any; off by default, needs PySpark 4",
    )
    of_clients.add_argument("--auth", metavar="FILE", help="let in the users of a file, by their password")
    of_clients.add_argument(
        "--add-user", metavar="NAME", help="write a user into that file, asking for the password, and end"
    )
    of_clients.add_argument(
        "--tls", nargs=2, metavar=("CERT", "KEY"), help="encrypt, with a certificate and its key in PEM"
    )
    of_commands = parser.add_argument_group("commands, such as dbt-hudi run")
    of_commands.add_argument(
        "--only-commands", action="store_true", help="take commands of this user, and no other clients"
    )
    of_commands.add_argument(
        "--end-after",
        type=float,
        default=0,
        metavar="N",
        help="seconds without a command after which the server ends (default 0, never)",
    )
    of_commands.add_argument(
        "--max-sparks",
        type=int,
        default=2,
        metavar="N",
        help="Java processes at a time, for commands whose settings differ (default 2)",
    )
    of_commands.add_argument(
        "--end", action="store_true", help="end the server that takes commands; by itself"
    )
    of_use = parser.add_argument_group("limits")
    for name, kind, default, what in (
        ("--max-sessions", int, _LIMITS.sessions, "sessions at a time"),
        ("--max-statements", int, _LIMITS.statements, "statements that run at a time; others wait"),
        ("--max-statement-bytes", int, _LIMITS.statement_bytes, "longest statement"),
        ("--idle", float, _LIMITS.idle_s, "seconds without a call, after which a session is closed"),
        (
            "--hold-drops",
            float,
            _DEFAULTS.hold_drops_s,
            "seconds that a dropped Hudi table waits for its CREATE TABLE",
        ),
        ("--grace", float, _DEFAULTS.grace_s, "seconds that running statements have when the server ends"),
    ):
        of_use.add_argument(
            name,
            type=kind,
            default=default,
            metavar="N",
            help=f"{what} (default {default if isinstance(default, int) else f'{default:g}'})",
        )
    of_use.add_argument(
        "--allow-code",
        action="store_true",
        help="accept ADD JAR, functions of Java classes, TRANSFORM, reflect, jdbc and classes in settings",
    )
    return parser


def server_options(options: Namespace) -> ServerOptions:
    """Return what the command line asks of the server; ConfigError for what makes no sense."""
    passwords = None if options.auth is None else Passwords.load(options.auth)
    made = ServerOptions(
        host=options.host,
        port=options.port,
        connect_port=options.connect_port,
        log_in=None if passwords is None else passwords.check,
        tls=None if options.tls is None else tuple(options.tls),
        grace_s=options.grace,
        hold_drops_s=options.hold_drops,
        limits=ServerLimits(
            sessions=options.max_sessions,
            statements=options.max_statements,
            statement_bytes=options.max_statement_bytes,
            idle_s=options.idle,
            allow_code=options.allow_code,
        ),
    )
    check_options(made)  # before Spark takes its time to start
    return made


def _check_commands(options: Namespace) -> None:
    """Raise ConfigError for options about commands that make no sense, or have no effect with others."""
    if options.end:
        raise ConfigError("--end ends a server, and takes no other options: dbt-hudi serve --end")
    if options.max_sparks < 1:
        raise ConfigError(f"--max-sparks is {options.max_sparks}; legal values: 1 or more")
    if not options.end_after >= 0:
        raise ConfigError(
            f"--end-after is {options.end_after:g}; legal values: seconds from 0, which is never"
        )
    if options.end_after and not options.only_commands:
        raise ConfigError(
            "--end-after counts commands alone, and would end statements of clients: add --only-commands"
        )
    of_clients = ("warehouse", "profile", "target", "profiles_dir", "conf", "auth", "tls", "allow_code")
    given = [f"--{name.replace('_', '-')}" for name in of_clients if getattr(options, name)]
    given += ["--connect-port"] if options.connect_port is not None else []
    if options.only_commands and given:
        raise ConfigError(
            f"--only-commands takes no other clients, and each command has its own profile: leave out {given[0]}"
        )


def _warehouse(options: Namespace) -> ServedWarehouse:
    """Return the warehouse of a folder, or of a dbt profile."""
    settings = dict(each.partition("=")[::2] for each in options.conf)
    of_profile = options.profile or options.target or options.profiles_dir
    if options.warehouse and of_profile:
        raise ConfigError(
            "--warehouse names the folder of the tables, and so does a profile: leave one of them out"
        )
    project = str(Path.cwd()) if Path(_PROJECT).exists() else None
    if options.warehouse is not None or not (project or of_profile):
        root = options.warehouse or DEFAULT_WAREHOUSE
        return ServedWarehouse(
            HudiCredentials(schema=_SCHEMA, location_root=root, spark_conf=settings), None, writes=True
        )
    if project is None:
        raise ConfigError(
            f"there is no {_PROJECT} here, which names a profile: go to the project's folder, or give --warehouse"
        )
    credentials = _profile_credentials(options, project)
    credentials.spark_conf.update(settings)
    return ServedWarehouse(credentials, project, writes=True)


def _profile_credentials(options: Namespace, project: str) -> HudiCredentials:
    profiles = options.profiles_dir or os.environ.get("DBT_PROFILES_DIR") or default_profiles_dir()
    set_from_args(Namespace(PROFILES_DIR=str(profiles), project_dir=project), None)
    credentials = load_profile(project, {}, options.profile, options.target).credentials
    if not isinstance(credentials, HudiCredentials):
        raise ConfigError(
            f"the profile is of type {credentials.type}; serve needs one of type hudi, or --warehouse DIR"
        )
    return credentials


class Commands:
    """The part of a server that takes commands, where no other server of this installation does.

    Args:
        front: The process that takes them.
        pipe: Ends it when it is closed.
    """

    def __init__(self, folder: Path, front: int, pipe: int, most: int) -> None:
        self._front, self._pipe = front, pipe
        self.sparks = Sparks(folder, most, partial(_say, to=sys.stderr))
        self.sparks.start()

    @classmethod
    def take(cls, options: Namespace, run: Run) -> Commands | None:
        """Take commands from now on; None where another server does. Call it before there are threads."""
        try:
            folder = server_folder()
        except ChannelError as error:
            if options.only_commands:
                raise
            _say(f"takes no commands: {error}", sys.stderr)
            return None
        lock = _lock(folder)
        if lock is None:
            if options.only_commands:
                raise ConfigError("a server runs already that takes commands; dbt-hudi serve --end ends it")
            return None
        os.ftruncate(lock, 0)
        os.write(lock, b"%d\n" % os.getpid())
        front, pipe = start_front(folder, run, options.end_after or None, options.grace)
        return cls(folder, front, pipe, options.max_sparks)

    def set_at_end(self, ended: threading.Event) -> None:
        """Set an event when the process that takes commands has ended, as it does when it is idle."""

        def wait() -> None:
            os.waitpid(self._front, 0)
            ended.set()

        self._waiting = threading.Thread(target=wait, name="end of commands", daemon=True)
        self._waiting.start()

    def stop(self, grace_s: float) -> None:
        """End what runs, in order, and every Java."""
        os.close(self._pipe)
        self._waiting.join(grace_s + _FRONT_ENDS_WITHIN_S)
        self.sparks.stop()


def _lock(folder: Path) -> int | None:
    """Return the open lock of a server's folder, when one that is ending has left it; None where one runs."""
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    until = time.monotonic() + _LEFT_WITHIN_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not _answers(folder) and time.monotonic() < until:
                time.sleep(_LOOK_EVERY_S)
                continue
            os.close(lock)
            return None
        return lock


def _answers(folder: Path) -> bool:
    try:
        connect(folder / COMMANDS).close()
    except OSError:
        return False
    return True


def _serve(warehouse: ServedWarehouse | None, options: ServerOptions, commands: Commands | None) -> int:
    """Run a server until it is to end, or its Java has; returns the exit code."""
    _log_to_stderr()
    # A signal to all processes of the server, as systemd sends it, must not end Java before its writes have ended
    os.register_at_fork(after_in_child=partial(signal.signal, signal.SIGTERM, signal.SIG_IGN))
    ended = _signals()  # one that comes while Spark starts counts when it has
    if commands is not None:
        commands.set_at_end(ended)
    server = None if warehouse is None else _serve_clients(warehouse, options, commands)
    if commands is not None:
        _say(_COMMANDS_TAKEN)
    _say("Ctrl-C or SIGTERM ends the server")
    is_alive = _wait(ended, server)
    running = 0 if server is None else len(server.sessions.running)
    _say(f"ending: {running} running statements have {options.grace_s:g} s" if running else "ending")
    if server is not None:
        server.stop()
    if commands is not None:
        commands.stop(options.grace_s)
    leave_spark()
    _say("ended")
    return 0 if is_alive else 1


def _wait(ended: threading.Event, server: HudiServer | None) -> bool:
    """Wait for the end; returns False when the Java of the clients' Spark has ended before."""
    while not ended.wait(_SPARK_LOOK_S):
        if server is not None and not is_running():
            _say("error: Spark's Java has ended, and the server ends with it; start it again", sys.stderr)
            return False
    return True


def _serve_clients(
    warehouse: ServedWarehouse, options: ServerOptions, commands: Commands | None
) -> HudiServer:
    """Start Spark, and take clients of HiveServer2; commands get sessions of the same Java where they may."""
    served = Served(warehouse, options.hold_drops_s)
    spark = served.open().spark
    if commands is not None:
        commands.sparks.adopt(started_spark(), java_gateway(spark), java_context(spark))
    server = HudiServer(served.open, options, served.adopt)
    server.start()
    _say(ready_lines(warehouse.places.location_root, spark.version, options, server.port))
    if server.connect_port is not None:
        _say(connect_line(options, server.connect_port))
    return server


def ready_lines(root: str, version: str, options: ServerOptions, port: int) -> str:
    """Return what the server says when it listens: where, and how common clients connect."""
    host = _named_host(options)
    secure = ";ssl=true" if options.tls else ""
    user = "-n USER -p PASSWORD" if options.log_in else "-n me"
    login = "USER:PASSWORD@" if options.log_in else ""
    auth = "?auth=LDAP" if options.log_in else ""
    keys = ", auth: LDAP, user: USER, password: PASSWORD" if options.log_in else ""
    keys += ", use_ssl: true" if options.tls else ""
    superset = f"hive://{login}{host}:{port}/default{auth}"
    if options.tls:
        superset = f"hive+https://{login}{host}:{port}/default?ssl_cert=required"
    return "\n".join(
        [
            f"tables of {root}, Spark {version}, at {options.host}:{port} (HiveServer2: binary and HTTP)",
            f"  beeline    beeline -u 'jdbc:hive2://{host}:{port}/default{secure}' {user}",
            f"  dbt-spark  {{type: spark, method: thrift, host: {host}, port: {port}, schema: analytics{keys}}}",
            f"  Superset   {superset}",
        ]
    )


def _named_host(options: ServerOptions) -> str:
    return options.host if options.host not in ("0.0.0.0", "::") else "HOST"


def connect_line(options: ServerOptions, port: int) -> str:
    """Return what the server says of Spark Connect."""
    host = _named_host(options)
    # PySpark sends a password in clear to localhost, by that name, and nowhere else
    host = "localhost" if options.log_in and not options.tls and host == _DEFAULTS.host else host
    words = [*(["use_ssl=true"] if options.tls else []), *(["token=USER:PASSWORD"] if options.log_in else [])]
    return f'  PySpark    SparkSession.builder.remote("sc://{host}:{port}/{"".join(f";{each}" for each in words)}").getOrCreate()'


def _signals() -> threading.Event:
    """Return what Ctrl-C and SIGTERM set; a second one ends the process at once."""
    ended = threading.Event()

    def end(number: int, _: object) -> None:
        ended.set()
        signal.signal(number, signal.SIG_DFL)

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, end)
    return ended


def _log_to_stderr() -> None:
    """Log what the engine, the server and the adapter do, a line each."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s"))
    log = logging.getLogger("hudi_engine")
    log.handlers[:] = [handler]
    cleanup_event_logger()
    add_logger_to_manager(
        LoggerConfig(
            "serve", line_format=LineFormat.PlainText, level=EventLevel.INFO, output_stream=sys.stderr
        )
    )


def _add_user(options: Namespace) -> int:
    if options.auth is None:
        raise ConfigError("--add-user needs the file to write to: --auth FILE")
    password = (
        getpass.getpass(f"password of {options.add_user}: ")
        if sys.stdin.isatty()
        else sys.stdin.readline().rstrip("\n")
    )
    if len(password) < _PASSWORD_LENGTH:
        raise ConfigError(f"the password is shorter than {_PASSWORD_LENGTH} characters")
    add_user(options.auth, options.add_user, password)
    _say(f"{options.add_user} is in {options.auth}; a running server reads it when it is started again")
    return 0


def _say(text: str, to: object = None) -> None:
    print(text, file=to, flush=True)  # type: ignore[call-overload]  # noqa: T201

"""The virtual environments: which there are, making them, and running commands in them."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tools.console import (
    CACHE,
    ROOT,
    SetupError,
    apt_install,
    detail,
    is_root_with_apt,
    logged,
    say,
    seconds_since,
)
from tools.java import ensure_java
from tools.uv import QUICK_WHEELS, uv_for, uv_variables

OLDEST, NEWEST = (3, 10), (3, 13)
_FOREIGN = (
    "PYTHONPATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "SPARK_HOME",
    "SPARK_CONF_DIR",
    "PYSPARK_PYTHON",
    "PYSPARK_DRIVER_PYTHON",
    "PYSPARK_SUBMIT_ARGS",
    # Each of the many processes of a run would compile the same sources again.
    "PYTHONDONTWRITEBYTECODE",
)
_making: dict[str, threading.Lock] = {}
"""By folder: two tiers that need the same environment do not make it at once."""
_ONE_AT_A_TIME = threading.Lock()
"""Environments are made beside each other, but for what writes into the checkout or asks the operating system's packages."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment of this checkout.

    Args:
        folder: Its folder, relative to the checkout.
        constraints: File with the exact versions.
        newest_python: Newest Python it works on, as (major, minor).
        requirements: File with what is installed beside the package.
        instead: File of packages that come last, in the place of others and without what they ask for; none when empty.
    """

    folder: str
    constraints: str
    newest_python: tuple[int, int]
    requirements: str = "requirements-dev.txt"
    instead: str = ""

    @property
    def path(self) -> Path:
        """Absolute folder."""
        return ROOT / self.folder

    @property
    def bin(self) -> Path:
        """Folder of its programs."""
        return self.path / ("Scripts" if os.name == "nt" else "bin")

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.bin / "python"


MAIN = Environment(".venv", "constraints-spark4.txt", NEWEST)
SPARK35 = Environment(".venv-spark35", "constraints-spark35.txt", (3, 12))
DBT112 = Environment(".venv-dbt112", "constraints-spark4.txt", NEWEST, instead="requirements-dbt112.txt")
_DEMO_ONLY = "requirements-demo.txt"
"""Part of ``requirements-dev.txt``: an environment that has that has this too."""


def for_demo(environment: Environment) -> Environment:
    """Return an environment with what the demo needs of it: no tools of developers."""
    return replace(environment, requirements=_DEMO_ONLY)


def ensure(environment: Environment) -> dict[str, str]:
    """Make an environment if it is missing or out of date.

    Returns:
        The variables for commands that run in it.

    Raises:
        SetupError: It cannot be made; the message says the next step.
    """
    stamp = environment.path / "dbt-hudi.stamp"
    full = replace(environment, requirements=Environment.requirements)
    with _making.setdefault(environment.folder, threading.Lock()):
        found = stamp.read_text() if stamp.exists() and environment.python.exists() else ""
        if found not in (_fingerprint(environment), _fingerprint(full)):
            if found != _fingerprint(for_demo(environment)):
                with _ONE_AT_A_TIME:
                    _make(environment)
            _install(environment)
            stamp.write_text(_fingerprint(environment))
    with _ONE_AT_A_TIME:
        java_home = ensure_java(environment.python)
    return variables(environment, java_home)


def variables(environment: Environment, java_home: Path) -> dict[str, str]:
    """Give the variables for commands that run in an environment."""
    env = {key: value for key, value in os.environ.items() if key not in _FOREIGN}
    env["PATH"] = os.pathsep.join([str(environment.bin), str(java_home / "bin"), env.get("PATH", os.defpath)])
    env["JAVA_HOME"] = str(java_home)
    env["VIRTUAL_ENV"] = str(environment.path)
    env["PYTHONUNBUFFERED"] = "1"
    return env


def _fingerprint(environment: Environment) -> str:
    digest = hashlib.sha256(f"{ROOT}\n".encode())
    files = (
        "constraints.txt",
        environment.constraints,
        environment.requirements,
        _DEMO_ONLY,
        environment.instead,
    )
    for name in filter(None, files):
        digest.update((ROOT / name).read_bytes())
    # What the package needs; settings of the tools, which come after it, may change without a new installation.
    digest.update((ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("[tool.ruff]")[0].encode())
    return digest.hexdigest()


def _base_python(environment: Environment) -> str:
    """Give the interpreter to make the environment with: this one, or an older one when this is too new."""
    if sys.version_info[:2] <= environment.newest_python:
        return sys.executable
    for minor in range(environment.newest_python[1], OLDEST[1] - 1, -1):
        found = shutil.which(f"python3.{minor}")
        # A version manager's shim can exist for a version that it does not run.
        if found and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
            detail(f"this Python is too new for {environment.folder}; using {found}")
            return found
    newest = ".".join(map(str, environment.newest_python))
    raise SetupError(
        f"{environment.folder} needs Python 3.10 to {newest}; this is Python {sys.version.split()[0]} and no "
        f"other was found. Next step: install Python {newest} and run this again."
    )


def _make(environment: Environment) -> None:
    """Make an empty environment; a half-made one of ours goes first."""
    mark = environment.path / "made-by-dev-py"
    if environment.path.exists() and mark.exists():
        shutil.rmtree(environment.path)
    if environment.python.exists():
        return
    python = _base_python(environment)
    say(f"making {environment.folder}")
    log = CACHE / "logs" / "venv.log"
    for command in _ways_to_make(python):
        try:
            logged([*command, str(environment.path)], log)
            mark.touch()
            return
        except subprocess.CalledProcessError:
            shutil.rmtree(environment.path, ignore_errors=True)
    raise SetupError(
        f"{python} can make no virtual environment: its modules venv and ensurepip are missing. "
        "Next step: install them (Debian/Ubuntu: `sudo apt-get install python3-venv`) and run this again."
    )


def _ways_to_make(python: str) -> list[list[str]]:
    def has(modules: str) -> bool:
        return subprocess.run([python, "-c", f"import {modules}"], capture_output=True).returncode == 0

    if not has("venv, ensurepip") and is_root_with_apt():
        say("Python's venv module is missing: installing it with apt-get")
        version = subprocess.run(
            [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        try:
            apt_install(f"python{version}-venv", "python3-venv")
        except SetupError as error:
            detail(str(error))
    ways = []
    if has("venv, ensurepip"):
        ways.append([python, "-m", "venv"])
    if has("virtualenv"):
        ways.append([python, "-m", "virtualenv", "-q"])
    return ways


def _install(environment: Environment) -> None:
    start = time.monotonic()
    say(f"installing into {environment.folder} (versions of {environment.constraints})")
    log = CACHE / "logs" / f"pip{environment.folder}.log"
    log.unlink(missing_ok=True)
    try:
        _install_with(environment, log)
    except subprocess.CalledProcessError as error:
        raise SetupError(
            f"pip could not install into {environment.folder} (exit code {error.returncode}, log: {log}). "
            "Next step: see that this machine reaches a package index (`pip config list`), then run again."
        ) from None
    detail(f"done in {seconds_since(start)}")


def _install_with(environment: Environment, log: Path) -> None:
    """Install with `uv`, which takes a third of the time, or if there is none or it fails with pip."""
    constraints = ["-c", environment.constraints]
    # What is imported is compiled then, which is a small part of all that is installed.
    quiet = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--no-compile"]
    pip = [str(environment.python), "-m", "pip", "install", *quiet]
    uv = uv_for(pip, constraints, log)
    if uv is not None:
        quick = [uv, "pip", "install", "--python", str(environment.python), *QUICK_WHEELS]
        try:
            _install_by(quick, environment, log, uv_variables(environment.python))
            return
        except subprocess.CalledProcessError:
            detail("uv could not install; trying pip")
    _install_by(pip, environment, log)


def _install_by(
    install: Sequence[str], environment: Environment, log: Path, env: dict[str, str] | None = None
) -> None:
    constraints = ["-c", environment.constraints]
    needed = [*constraints, "--no-build-isolation", "-r", environment.requirements, *_dependencies()]
    logged([*install, *constraints, "setuptools", "wheel"], log, env=env)
    logged([*install, *needed], log, env=env, on_line=_show_download)
    with _ONE_AT_A_TIME:
        package = [*constraints, "--no-build-isolation", "--no-deps", "-e", "."]
        logged([*install, *package], log, env=env)
    if environment.instead:
        logged([*install, "--no-deps", "-r", environment.instead], log, env=env)


def _dependencies() -> list[str]:
    """Give what the package needs, as it says itself; before Python 3.11 there is no reader of its file."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r"^dependencies = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return re.findall(r'"([^"]+)"', found.group(1))


def _show_download(line: str) -> None:
    """Show the downloads that a person waits for."""
    found = re.match(r"\s*Downloading (\S+) \(([\d.]+) (MB|GB)\)", line)
    if found and (found.group(3) == "GB" or float(found.group(2)) >= 10):
        detail(f"downloading {found.group(1).rsplit('/', 1)[-1]} ({found.group(2)} {found.group(3)})")

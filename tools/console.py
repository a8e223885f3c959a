"""Progress lines, and child processes whose output is shown or kept in a log."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"


class SetupError(Exception):
    """Set-up cannot go on; the message is one line with the next step."""


_background = threading.local()


@contextmanager
def in_background() -> Iterator[None]:
    """Keep the progress lines of this thread from the screen, which belongs to what runs in front."""
    _background.silent = True
    try:
        yield
    finally:
        _background.silent = False


@contextmanager
def kept_back(lines: list[str]) -> Iterator[None]:
    """Add all lines that this thread would print to ``lines``, to be printed when nothing comes between them."""
    _background.lines = lines
    try:
        yield
    finally:
        _background.lines = None


def say(text: str) -> None:
    """Print one progress line at once."""
    if not getattr(_background, "silent", False):
        _tell(f"==> {text}")


def detail(text: str) -> None:
    """Print a line below a progress line."""
    if not getattr(_background, "silent", False):
        _tell(f"    {text}")


def _tell(line: str) -> None:
    lines: list[str] | None = getattr(_background, "lines", None)
    if lines is None:
        print(line, flush=True)
    else:
        lines.append(line)


def aside(text: str) -> None:
    """Print a line at once where others are kept back, so that somebody who waits sees that it goes on."""
    if getattr(_background, "lines", None) is not None:
        print(text, flush=True)


def seconds_since(start: float) -> str:
    """Give the seconds since ``start`` (a ``time.monotonic()``) as text."""
    return f"{time.monotonic() - start:.0f} s"


def _started(command: Sequence[str], env: dict[str, str] | None) -> subprocess.Popen[str]:
    """Start a command in the checkout, with what it says to read."""
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )


def logged(
    command: Sequence[str],
    log: Path,
    *,
    env: dict[str, str] | None = None,
    on_line: Callable[[str], None] | None = None,
) -> None:
    """Run a command with its output in a log file.

    Args:
        command: Program and arguments.
        log: File that gets the output.
        env: Environment of the process; default: the present one.
        on_line: Called with each line of output.

    Raises:
        subprocess.CalledProcessError: The command failed; the end of its output has been printed.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    with log.open("a", encoding="utf-8") as out:
        process = _started(command, env)
        assert process.stdout is not None
        for line in process.stdout:
            out.write(line)
            lines.append(line.rstrip())
            if on_line is not None:
                on_line(line.rstrip())
        code = process.wait()
    if code != 0:
        for line in lines[-20:]:
            detail(line)
        raise subprocess.CalledProcessError(code, list(command))


def shown(command: Sequence[str], env: dict[str, str], on_line: Callable[[str], None]) -> int:
    """Run a command with its output on the screen, unless that is kept back; returns its exit code."""
    process = _started(command, env)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            _tell(line.rstrip("\n"))
            on_line(line)
        return process.wait()
    except KeyboardInterrupt:
        return process.wait()


def is_root_with_apt() -> bool:
    """Whether packages of the operating system can be installed by this process (Debian, Ubuntu)."""
    return hasattr(os, "geteuid") and os.geteuid() == 0 and Path("/usr/bin/apt-get").exists()


def apt_install(*alternatives: str) -> str:
    """Install the first of some Debian packages that can be installed.

    Args:
        alternatives: Package names, the best first.

    Returns:
        The name of the package installed.

    Raises:
        SetupError: None could be installed.
    """
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    log = CACHE / "logs" / "apt.log"
    # Slim images leave this folder out, and the post-install step of the Java packages fails without it.
    Path("/usr/share/man/man1").mkdir(parents=True, exist_ok=True)
    try:
        logged(["apt-get", "update", "-q"], log, env=env)
    except subprocess.CalledProcessError:
        detail("apt-get update failed; trying with the package lists that are there")
    for package in alternatives:
        try:
            logged(["apt-get", "install", "-y", "-q", "--no-install-recommends", package], log, env=env)
            return package
        except subprocess.CalledProcessError:
            detail(f"apt-get could not install {package}")
    raise SetupError(f"apt-get could install none of: {', '.join(alternatives)} (see {log})")

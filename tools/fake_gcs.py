"""Bringing in fake-gcs-server, a server of Google's object store, for the long tier.

It is a module of Go, is built once and stays in ``.cache``. Nothing of the package needs it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tools.console import CACHE, SetupError, logged, say

VERSION = "v1.56.1"
_FOLDER = CACHE / f"fake-gcs-server-{VERSION}"
_USUAL_GO = "/usr/local/go/bin/go"


def ensure_fake_gcs() -> Path:
    """Return the program; build it when it is not there.

    Raises:
        SetupError: Go is missing, or cannot fetch or build the module.
    """
    program = _FOLDER / "fake-gcs-server"
    if program.exists():
        return program
    go = shutil.which("go") or shutil.which(_USUAL_GO)
    if go is None:
        raise SetupError("fake-gcs-server is built by Go, and there is no `go` on the path")
    say(f"building fake-gcs-server {VERSION} (about two minutes, kept in .cache)")
    folders = {"GOBIN": str(_FOLDER), "GOPATH": str(_FOLDER / "go"), "GOCACHE": str(_FOLDER / "built")}
    log = CACHE / "logs" / "fake-gcs-server.log"
    try:
        logged(
            [go, "install", f"github.com/fsouza/fake-gcs-server@{VERSION}"],
            log,
            env={**os.environ, **folders, "GOFLAGS": "-modcacherw"},
        )
    except subprocess.CalledProcessError as error:
        raise SetupError(
            f"Go could not build fake-gcs-server {VERSION} (see .cache/logs/fake-gcs-server.log)"
        ) from error
    for name in ("go", "built"):
        shutil.rmtree(_FOLDER / name, ignore_errors=True)
    return program

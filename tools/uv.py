"""`uv`, which installs in a third of pip's time: the machine's own, or one that pip brings into the environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.console import logged

# What pip is told about its index, in uv's words.
_IN_UVS_WORDS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "timeout": "UV_HTTP_TIMEOUT",
}

# PySpark comes as source: 450 MB of jars that its wheel would pack a second time.
QUICK_WHEELS = ("--config-setting=--build-option=--compression=stored",)


def uv_for(pip: Sequence[str], constraints: Sequence[str], log: Path) -> str | None:
    """Return the program, brought by pip where the machine has none; None where pip cannot bring it.

    Args:
        pip: The command that installs with the environment's pip.
        constraints: Its arguments that name the constraints.
        log: File that gets pip's output.
    """
    found = shutil.which("uv")
    if found is not None:
        return found
    python = Path(pip[0])
    try:
        logged([*pip, *constraints, "uv"], log)
    except subprocess.CalledProcessError:
        return None
    return shutil.which("uv", path=str(python.parent))


def uv_variables(python: str | Path) -> dict[str, str]:
    """Return the variables that uv runs with: it asks the same index, by the same certificates, as pip does."""
    told = subprocess.run(
        [str(python), "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    return {**in_uvs_words(told), **os.environ}


def in_uvs_words(told: str) -> Mapping[str, str]:
    """Translate what `pip config list` prints, where variables win over what files say of `install` and of all commands.

    Args:
        told: Lines such as ``global.index-url='https://...'`` and ``:env:.cert='/etc/...'``.
    """
    found = {}
    lines = re.findall(r"^(:env:|global|install)\.([a-z-]+)='(.*)'$", told, re.MULTILINE)
    for _, name, value in sorted(lines, key=lambda each: ("global", "install", ":env:").index(each[0])):
        if name in _IN_UVS_WORDS:
            separator = "," if name == "find-links" else " "
            found[_IN_UVS_WORDS[name]] = separator.join(re.split(r"\s+|\\n", value.strip()))
    return found

"""Bringing in Azurite, Microsoft's server of the protocol of Azure's object store, for the long tier.

It is a package of npm and stays in ``.cache``. Nothing of the package needs it.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tools.console import CACHE, SetupError, logged, say

VERSION = "3.35.0"
_FOLDER = CACHE / f"azurite-{VERSION}"
_MAIN = "node_modules/azurite/dist/src/blob/main.js"


def ensure_azurite() -> Path:
    """Return the program of Azurite, which node runs; install it when it is not there.

    Raises:
        SetupError: node or npm is missing, or npm cannot fetch the package.
    """
    main = _FOLDER / _MAIN
    if shutil.which("node") is None or (not main.exists() and shutil.which("npm") is None):
        raise SetupError("Azurite needs node and npm, and they are not on the path")
    if not main.exists():
        say(f"fetching Azurite {VERSION} (about 190 MB, kept in .cache)")
        part = _FOLDER.with_name(f"{_FOLDER.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(part)]
        try:
            logged([*command, f"azurite@{VERSION}"], CACHE / "logs" / "azurite.log")
        except subprocess.CalledProcessError as error:
            raise SetupError(
                f"npm could not install azurite {VERSION} (see .cache/logs/azurite.log)"
            ) from error
        shutil.rmtree(_FOLDER, ignore_errors=True)
        part.rename(_FOLDER)
    return main

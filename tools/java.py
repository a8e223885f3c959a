"""Finding a Java that Spark runs on, or bringing one in."""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tools.console import CACHE, SetupError, apt_install, detail, is_root_with_apt, logged, say

WANTED = (17, 21)
_FOLDERS = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/jdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk@*",
    "/usr/local/opt/openjdk@*",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
    "~/.jdk/*",
    str(CACHE / "java" / "*"),
    str(CACHE / "java" / "*" / "Contents" / "Home"),
)
NEXT_STEP = (
    "install Java 17 (Debian/Ubuntu: `sudo apt-get install openjdk-17-jre-headless`; "
    "macOS: `brew install openjdk@17`) and run this again"
)


def major_version(home: Path) -> int | None:
    """Give the major version of the Java in a folder, or None when there is no working one."""
    program = home / "bin" / "java"
    if not os.access(program, os.X_OK):
        return None
    try:
        answer = subprocess.run([str(program), "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(found.group(1)) if found and answer.returncode == 0 else None


def _candidates() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"])
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path).resolve().parent.parent
    for pattern in _FOLDERS:
        yield from (Path(name) for name in sorted(glob.glob(os.path.expanduser(pattern))))


def find_java() -> Path | None:
    """Give the home folder of an installed Java 17 or 21, or None."""
    seen: set[Path] = set()
    for home in _candidates():
        if home not in seen and major_version(home) in WANTED:
            return home
        seen.add(home)
    return None


def ensure_java(python: Path) -> Path:
    """Find a Java 17 or 21, or bring one in.

    Args:
        python: A Python with pip, used for the download where the operating system's packages cannot be.

    Returns:
        The home folder of the Java.

    Raises:
        SetupError: There is none and none could be brought in.
    """
    home = find_java()
    if home is not None:
        return home
    reasons = []
    if is_root_with_apt():
        say("no Java 17 or 21 found: installing one with apt-get")
        try:
            detail(f"installed {apt_install('openjdk-17-jre-headless', 'openjdk-21-jre-headless')}")
        except SetupError as error:
            reasons.append(str(error))
        home = find_java()
    if home is None:
        say("no Java 17 or 21 found: downloading one into .cache/java")
        try:
            _download(python)
        except subprocess.CalledProcessError as error:
            reasons.append(f"the download of Java 17 failed ({error.returncode}, see .cache/logs/java.log)")
        home = find_java()
    if home is None:
        raise SetupError(
            f"No Java 17 or 21 here, and {'; '.join(reasons) or 'none could be brought in'}. "
            f"Next step: {NEXT_STEP}."
        )
    return home


def _download(python: Path) -> None:
    log = CACHE / "logs" / "java.log"
    folder = CACHE / "java"
    folder.mkdir(parents=True, exist_ok=True)
    helper = CACHE / "install-jdk"
    logged([str(python), "-m", "pip", "install", "-q", "--target", str(helper), "install-jdk>=1.1,<2"], log)
    code = f"import jdk; print(jdk.install('17', jre=True, path={str(folder)!r}))"
    logged([str(python), "-c", code], log, env={**os.environ, "PYTHONPATH": str(helper)})

"""The Unix sockets between commands and their server: where they are, who may use them, and messages with open files.

Nothing of dbt or Spark is imported here, as a command that hands its work over is to begin at once.
"""

from __future__ import annotations

import array
import hashlib
import json
import os
import socket
import stat
import struct
import sys
import sysconfig
from pathlib import Path
from typing import Any

from dbt.adapters.hudi.__version__ import version

COMMANDS, SPARK = "commands", "spark"
_LENGTH = struct.Struct("!I")
_MAX_BYTES = 64 * 2**20
_MAX_FILES = 3
_LONGEST_PATH = 100
"""Bytes of a socket's path: the address of a Unix socket has room for 103 on macOS, for 107 on Linux."""
_PEER_OF_LINUX = struct.Struct("3i")
_PEER_OF_MACOS = struct.Struct("=2I")


class ChannelError(Exception):
    """A socket or its folder cannot be used, or its peer belongs to another user."""


def own_folder(place: Path) -> Path:
    """Return a folder that only this user can open, made if it is not there; raises ChannelError for any other."""
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = place.lstat()
    except OSError as error:
        raise ChannelError(f"{place} cannot be made: {error.strerror}; set XDG_RUNTIME_DIR") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ChannelError(
            f"{place} is to be a folder that only its owner can open (mode 0700), and is not; set XDG_RUNTIME_DIR to a folder "
            "of yours"
        )
    return place


def server_folder() -> Path:
    """Return the folder with the sockets of the server of this installation: a changed one has another server."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if not base:
        caches = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
        base = os.environ.get("XDG_CACHE_HOME") or str(caches)
    folder = own_folder(Path(base) / "dbt-hudi" / f"server-{_installation()}")
    if len(os.fsencode(folder / COMMANDS)) > _LONGEST_PATH:
        raise ChannelError(
            f"{folder} is too long for the address of a Unix socket; set XDG_RUNTIME_DIR to a shorter folder"
        )
    return folder


def _installation() -> str:
    """Return a hash of what is installed; files that Python itself adds, as compiled ones, do not count."""
    packages = sysconfig.get_path("purelib")
    known = [os.path.realpath(sys.prefix), packages, version]
    try:
        with os.scandir(packages) as found:
            known += sorted(
                f"{each.name} {each.stat().st_mtime_ns}"
                for each in found
                if each.name.endswith((".dist-info", ".egg-link"))
            )
    except OSError:
        pass  # an installation without such a folder is known by its place and version
    return hashlib.sha256("\n".join(known).encode(errors="surrogateescape")).hexdigest()[:12]


def listen(path: Path) -> socket.socket:
    """Listen at a path; what an ended server has left there is replaced."""
    path.unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.bind(str(path))
    path.chmod(0o600)
    made.listen(64)
    return made


def connect(path: Path) -> socket.socket:
    """Connect to a server of this user; raises OSError when none listens, ChannelError when it is another user's."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.connect(str(path))
        check_peer(made)
    except BaseException:
        made.close()
        raise
    return made


def check_peer(connection: socket.socket) -> None:
    """Raise ChannelError unless the other process belongs to this user."""
    if sys.platform == "darwin":
        # LOCAL_PEERCRED of SOL_LOCAL: version and user id, then groups
        user = _PEER_OF_MACOS.unpack_from(connection.getsockopt(0, 1, 76))[1]
    else:
        given = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_OF_LINUX.size)
        user = _PEER_OF_LINUX.unpack(given)[1]
    if user != os.getuid():
        raise ChannelError(f"the other process belongs to user {user}, and not to {os.getuid()}")


def send(connection: socket.socket, message: Any, files: tuple[int, ...] = ()) -> None:
    """Send a message of JSON, with open files that the other process gets too."""
    content = json.dumps(message).encode("ascii")
    head = _LENGTH.pack(len(content))
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
    connection.sendmsg([head], rights)
    connection.sendall(content)


def receive(connection: socket.socket) -> tuple[Any, list[int]]:
    """Receive a message and the files that came with it; raises EOFError when the other process has gone."""
    files = array.array("i")
    head, rights, _, _ = connection.recvmsg(_LENGTH.size, socket.CMSG_SPACE(_MAX_FILES * files.itemsize))
    for level, kind, content in rights:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            files.frombytes(content[: len(content) - len(content) % files.itemsize])
    head += _exactly(connection, _LENGTH.size - len(head))
    (length,) = _LENGTH.unpack(head)
    if length > _MAX_BYTES:
        raise ChannelError(f"a message of {length} bytes; at most {_MAX_BYTES} are taken")
    return json.loads(_exactly(connection, length)), list(files)


def _exactly(connection: socket.socket, length: int) -> bytes:
    content = bytearray()
    while len(content) < length:
        part = connection.recv(min(length - len(content), 2**16))
        if not part:
            raise EOFError("the other process has gone")
        content += part
    return bytes(content)

"""Users and salted hashes of their passwords, one ``name:hash`` a line."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from hudi_engine.errors import ConfigError

_SCHEME, _COST, _BLOCK, _LANES = "scrypt", 14, 8, 1
_MAX_COST = 20
LogIn = Callable[[str, str], bool]
"""Returns whether a password is that of a user."""


class Passwords:
    """The users of a file, which is read once."""

    def __init__(self, hashes: Mapping[str, str]) -> None:
        self._hashes = hashes
        self._session_key = secrets.token_bytes(32)
        self._known: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self._nobody = _hashed(secrets.token_hex(8))

    @classmethod
    def load(cls, path: str) -> Passwords:
        """Read a file; ConfigError names the line that is wrong."""
        try:
            lines = Path(path).read_text("utf-8").splitlines()
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"the file of users {path!r} cannot be read: {error}; make one with dbt-hudi serve --add-user NAME --auth FILE"
            ) from error
        hashes: dict[str, str] = {}
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            name, _, hashed = line.strip().partition(":")
            if not name or not _is_hash(hashed):
                raise ConfigError(
                    f"line {number} of {path} is not a user and a hash, name:scrypt$...; write it with dbt-hudi serve --add-user"
                )
            hashes[name] = hashed
        if not hashes:
            raise ConfigError(
                f"there is no user in {path}; add one with dbt-hudi serve --add-user NAME --auth {path}"
            )
        return cls(hashes)

    def check(self, user: str, password: str) -> bool:
        """Return whether a password is that of a user; it takes as long for a user that is not there."""
        digest = hmac.new(
            self._session_key, f"{user}\0{password}".encode("utf-8", "replace"), "sha256"
        ).digest()
        known = self._known.get(user)
        if known is not None and hmac.compare_digest(known, digest):
            return True
        with self._lock:  # each check takes 16 MiB and a core
            good = _matches(password, self._hashes.get(user, self._nobody)) and user in self._hashes
        if good:
            self._known[user] = digest
        return good


def add_user(path: str, user: str, password: str) -> None:
    """Write a user and password into a file, which only its owner may read; a user that is there gets the new password."""
    if not user or ":" in user or not user.isprintable():
        raise ConfigError(
            f"the user name {user!r} is empty, or has a colon or an unprintable character in it"
        )
    file = Path(path)
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    kept = [line for line in lines if line.partition(":")[0] != user]
    written = "\n".join([*kept, f"{user}:{_hashed(password)}", ""])
    beside = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.write(written)
    beside.replace(file)


def _hashed(password: str) -> str:
    salt = secrets.token_bytes(16)
    parts = (_scrypt(password, salt, _COST, _BLOCK, _LANES), salt)
    hashed, salted = (base64.b64encode(part).decode() for part in parts)
    return f"{_SCHEME}${_COST}${_BLOCK}${_LANES}${salted}${hashed}"


def _matches(password: str, hashed: str) -> bool:
    _, cost, block, lanes, salt, wanted = hashed.split("$")
    found = _scrypt(password, base64.b64decode(salt), int(cost), int(block), int(lanes))
    return hmac.compare_digest(found, base64.b64decode(wanted))


def _scrypt(password: str, salt: bytes, cost: int, block: int, lanes: int) -> bytes:
    memory = 132 * block * lanes * 2**cost
    return hashlib.scrypt(
        password.encode("utf-8", "replace"), salt=salt, n=2**cost, r=block, p=lanes, maxmem=memory * 2
    )


def _is_hash(text: str) -> bool:
    parts = text.split("$")
    numbers = parts[1:4]
    return (
        len(parts) == 6
        and parts[0] == _SCHEME
        and all(each.isdigit() and 0 < int(each) <= _MAX_COST for each in numbers)
    )

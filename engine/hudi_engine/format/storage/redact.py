"""Keeping secrets out of what people read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_SECRET_NAME = re.compile(r"secret|key|token|password|signature|credential|sas", re.IGNORECASE)
_SECRET_OPTION = re.compile(
    r"secret|token|password|signature|credential|(access|account|api|private).?key|headers|url", re.IGNORECASE
)
"""Of ``hoodie.*`` options, where a key is mostly that of a record."""
_PUBLIC = frozenset({"encryption_key_sha256"})
# Signatures in URLs and headers that a client's error repeats.
_IN_TEXT = re.compile(
    r"((?:[?&;\s\"']|^)(?:sig|signature|x-amz-signature|x-amz-security-token|x-amz-credential|x-goog-signature|"
    r"x-goog-credential|accountkey|sharedaccesssignature|authorization|access_token)(?:=|:\s*))[^&\s\"',;)]+",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"(?<=://)([^/\s@:]*):[^/\s@]+@")
# A property among options, such as Java's, or a parameter of a URL.
_PROPERTY = re.compile(r"([\w.-]*(?:secret|password|token|access.?key)[\w.-]*=)[^\s&;\"']+", re.IGNORECASE)
_SHORTEST = 4
HIDDEN = "***"


def is_secret(name: str) -> bool:
    """Return whether the value of a setting, or of an option, may be shown to no one."""
    pattern = _SECRET_OPTION if name.startswith("hoodie.") else _SECRET_NAME
    return name not in _PUBLIC and pattern.search(name) is not None


def secrets_of(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of a store's settings that are secret."""
    return tuple(value for name, value in settings.items() if is_secret(name) and len(value) >= _SHORTEST)


def shown_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings of Spark, or options, as people may read them: values of secret names hidden, others without passwords."""
    return {
        name: HIDDEN
        if is_secret(name) and value not in ("true", "false")
        else _PROPERTY.sub(rf"\1{HIDDEN}", redacted(value))
        for name, value in settings.items()
    }


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a message without secrets."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = _LOGIN.sub(rf"\1:{HIDDEN}@", text)
    return _IN_TEXT.sub(rf"\1{HIDDEN}", text)

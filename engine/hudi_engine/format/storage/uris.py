"""Parts of the URI of a remote place: which store, which bucket, which path, and how to get in.

Credentials and settings are taken out of a URI at once. The engine names the place without them from then on, so that
they reach no message and no metadata; :mod:`hudi_engine.format.storage.given` finds them again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from urllib.parse import parse_qsl, unquote

from hudi_engine.errors import ConfigError


class StoreKind(str, Enum):
    """A store whose protocol the engine speaks with conditional writes."""

    S3 = "s3"
    GCS = "gcs"
    AZURE = "azure"


KINDS: Mapping[str, StoreKind] = MappingProxyType(
    {
        "s3": StoreKind.S3,
        "s3a": StoreKind.S3,
        "s3n": StoreKind.S3,
        "gs": StoreKind.GCS,
        "gcs": StoreKind.GCS,
        "abfs": StoreKind.AZURE,
        "abfss": StoreKind.AZURE,
        "az": StoreKind.AZURE,
    }
)
"""StoreKind of store by scheme."""

_LOGIN = re.compile(r"^(?P<user>[^@:]*):(?P<password>[^@]*)@")
_LOGIN_KEYS = {
    StoreKind.S3: ("access_key_id", "secret_access_key"),
    StoreKind.AZURE: ("account_name", "account_key"),
}
_SPARK_SCHEME = {"s3": "s3a", "s3n": "s3a", "gcs": "gs"}


@dataclass(frozen=True)
class RemoteUri:
    """A place in a remote store.

    Args:
        authority: Bucket, or ``container@account.host``, without credentials.
        path: Path in the bucket, literal, without slashes at its ends.
        login: Credentials that stood before the host, as settings of the store.
    """

    scheme: str
    authority: str
    path: str
    login: Mapping[str, str] = field(repr=False)
    settings: Mapping[str, str] = field(repr=False)
    raw_authority: str = field(repr=False)
    query: str = field(repr=False)

    @classmethod
    def parse(cls, base: str) -> RemoteUri:
        """Take a URI apart; percent signs in its path are literal."""
        location, question, query = base.partition("?")
        scheme, _, rest = location.rstrip("/").partition("://")
        scheme = scheme.lower()
        raw, _, path = rest.partition("/")
        found = _LOGIN.match(raw)
        # An Azure container is before the account, and a key may follow it: container:key@account.host.
        login: dict[str, str] = {}
        authority = raw
        if found is not None:
            user, password = unquote(found["user"]), unquote(found["password"])
            host = raw[found.end() :]
            is_container = KINDS.get(scheme) is StoreKind.AZURE and "." in host
            authority = f"{user}@{host}" if is_container else host
            names = _LOGIN_KEYS.get(KINDS.get(scheme, StoreKind.GCS), ())
            values = (host.partition(".")[0], password) if is_container else (user, password)
            login = dict(zip(names, values, strict=False))
        if scheme in KINDS and _has_rest_of_login(authority, KINDS[scheme]):
            raise ConfigError(
                f"the {scheme}:// URI has no bucket before its first slash, but a ':' or '@' too many. Percent-encode what "
                "credentials have of : / ? and @ (%3A %2F %3F %40), or give them as settings of the store, as an endpoint is "
                "(docs/stores.md)"
            )
        settings = dict(parse_qsl(query, keep_blank_values=True))
        return cls(scheme, authority, path.strip("/"), login, settings, raw, question + query)

    @property
    def kind(self) -> StoreKind | None:
        """The kind of store; None when it is none that the engine knows conditional writes of."""
        return KINDS.get(self.scheme)

    @property
    def public(self) -> str:
        """The URI without credentials and settings."""
        return f"{self.scheme}://{self._below}"

    @property
    def spark(self) -> str:
        """The same place as Spark's file systems spell it."""
        return f"{_SPARK_SCHEME.get(self.scheme, self.scheme)}://{self._below}"

    @property
    def bucket(self) -> str:
        """Bucket, or container of an Azure account."""
        return self.authority.partition("@")[0]

    @property
    def account_host(self) -> str:
        """Host of an Azure account, such as ``acme.dfs.core.windows.net``; ``""`` when it is not named."""
        return self.authority.partition("@")[2]

    @property
    def has_access(self) -> bool:
        """Whether the URI has credentials or settings."""
        return bool(self.query or self.login or self.raw_authority != self.authority)

    @property
    def _below(self) -> str:
        return f"{self.authority}/{self.path}" if self.path else self.authority


def plain_location(location: str) -> str:
    """Return the spelling of a folder that is the same for all of its URIs, without credentials and settings.

    ``/x``, ``file:/x`` and ``file:///x`` are one, and so are the schemes of a store, such as ``s3:`` and ``s3a:``.
    """
    if location.startswith("file:"):
        location = "/" + location[len("file:") :].lstrip("/")
    return RemoteUri.parse(location).spark if "://" in location else location.rstrip("/")


def same_place(left: str, right: str) -> bool:
    """Return whether two spellings mean one folder; a link to a local one is that folder."""
    return plain_location(left) == plain_location(right) or real_location(left) == real_location(right)


def lies_within(place: str, folder: str) -> bool:
    """Return whether a place is below a folder, whatever their spellings and local links."""
    return real_location(place).startswith(f"{real_location(folder)}/")


def real_location(location: str) -> str:
    """Return the spelling of a folder that is the same for all of its URIs and local links."""
    plain = plain_location(location)
    return os.path.realpath(plain) if plain.startswith("/") else plain


def _has_rest_of_login(authority: str, kind: StoreKind) -> bool:
    """Return whether credentials were cut at a character of their own, so that a part of them would be shown as a place."""
    return ":" in authority or authority.count("@") > (kind is StoreKind.AZURE)

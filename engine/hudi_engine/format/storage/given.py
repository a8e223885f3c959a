"""Credentials and settings of remote stores, from URIs and from the profile of this process.

What was set for one place holds for places below and next to it, and for the folder above: a table's successor is
built next to it, and a warehouse is listed above it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile

from hudi_engine.errors import ConfigError
from hudi_engine.format.storage.uris import RemoteUri

_PLACES: dict[tuple[str, str], dict[str, RemoteUri]] = {}
"""By store and authority, the URIs with credentials or settings."""
_SETTINGS: dict[tuple[str, str], dict[str, Mapping[str, str]]] = {}
"""By store and authority, settings that were given for a place and all below it."""
_OF_PROFILE: list[tuple[RemoteUri, Mapping[str, str], Mapping[str, str] | None]] = []
"""The place whose settings are of the profile that the process goes by, those, and what was set for it before."""


def remember(uri: RemoteUri) -> None:
    """Keep the credentials and settings of a URI; the newest of one place counts."""
    known = _PLACES.setdefault(_store(uri), {})
    known.pop(uri.path, None)
    known[uri.path] = uri


def use_settings(base: str, settings: Mapping[str, str]) -> None:
    """Set how a remote place, and all below it, is reached from this process and the tasks it starts."""
    place = _place_of(base, settings)
    if place is not None:
        known = _SETTINGS.setdefault(_store(place), {})
        known.pop(place.path, None)
        known[place.path] = dict(settings)


def use_profile(base: str, settings: Mapping[str, str]) -> None:
    """Set the same by a profile that the process goes by from now on: settings of the one before are dropped."""
    while _OF_PROFILE:
        left, of_profile, before = _OF_PROFILE.pop()
        known = _SETTINGS.get(_store(left), {})
        if known.get(left.path) is of_profile:  # else another call has changed it since
            del known[left.path]
            if before is not None:
                known[left.path] = before
    place = _place_of(base, settings) if settings else None
    if place is not None:
        before = _SETTINGS.get(_store(place), {}).get(place.path)
        use_settings(base, settings)
        _OF_PROFILE.append((place, _SETTINGS[_store(place)][place.path], before))


def public_location(location: str) -> str:
    """Return a location without credentials and settings, which this process keeps for what is there."""
    if not isinstance(location, str) or not _is_remote(location):
        return location
    uri = RemoteUri.parse(location)
    if uri.has_access:
        remember(uri)
    return uri.public


def with_access(uri: RemoteUri) -> RemoteUri:
    """Return the URI with the credentials of a place: itself, or the nearest one known in its bucket."""
    if uri.has_access:
        return uri
    known = _PLACES.get(_store(uri), {})
    return known[_nearest(uri.path, known)] if known else uri


def settings_for(uri: RemoteUri) -> Mapping[str, str]:
    """Return the settings given for the nearest place of a bucket."""
    known = _SETTINGS.get(_store(uri), {})
    return known[_nearest(uri.path, known)] if known else {}


def _is_remote(base: str) -> bool:
    return "://" in base and not base.startswith("file:")


def _place_of(base: str, settings: Mapping[str, str]) -> RemoteUri | None:
    """Return the place that settings are for, None for a local folder, which has none."""
    if _is_remote(base):
        return RemoteUri.parse(base)
    if settings:
        raise ConfigError(
            f"there are settings of a store ({', '.join(sorted(settings))}) for {base!r}, which is a local folder; "
            "leave them out, or name a URI such as s3a://bucket/warehouse"
        )
    return None


def _store(uri: RemoteUri) -> tuple[str, str]:
    kind = uri.kind
    return (uri.scheme if kind is None else kind.value, uri.authority)


def _nearest(path: str, known: Iterable[str]) -> str:
    """Return the place that shares the longest way with ``path``, the newest of equally near ones."""
    parts = path.split("/")

    def shared(other: str) -> int:
        pairs = zip(parts, other.split("/"), strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    return max(reversed(list(known)), key=shared)

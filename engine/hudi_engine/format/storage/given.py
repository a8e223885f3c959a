"""How to reach places in remote stores, as URIs and the profile of this process have said.

What was said of one place holds for what lies below and beside it, and for the folder above: a table's successor is
built beside it, and a warehouse is listed above it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile

from hudi_engine.errors import ConfigError
from hudi_engine.format.storage.uris import RemoteUri

_PLACES: dict[tuple[str, str], dict[str, RemoteUri]] = {}
"""By store and authority, the URIs that told how to get in."""
_SETTINGS: dict[tuple[str, str], dict[str, Mapping[str, str]]] = {}
"""By store and authority, settings that were given for a place and all below it."""
_OF_PROFILE: list[tuple[RemoteUri, Mapping[str, str], Mapping[str, str] | None]] = []
"""The place whose settings are of the profile that the process goes by, those, and what was said of it before."""
_OF_TOLD: set[tuple[tuple[str, str], str]] = set()
"""Stores and places whose settings this process has from another one alone."""


def remember(uri: RemoteUri) -> None:
    """Keep what a URI says of how to get in; the newest of one place counts."""
    known = _PLACES.setdefault(_store(uri), {})
    known.pop(uri.path, None)
    known[uri.path] = uri


def use_settings(base: str, settings: Mapping[str, str]) -> None:
    """Say how a remote place, and all below it, is reached from this process and the tasks it starts."""
    place = _place_of(base, settings)
    if place is not None:
        known = _SETTINGS.setdefault(_store(place), {})
        known.pop(place.path, None)
        known[place.path] = dict(settings)


def use_profile(base: str, settings: Mapping[str, str]) -> None:
    """Say the same by a profile that the process goes by from now on: what the one before it said holds no longer."""
    while _OF_PROFILE:
        left, of_profile, before = _OF_PROFILE.pop()
        known = _SETTINGS.get(_store(left), {})
        if known.get(left.path) is of_profile:  # else somebody has said something else since
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
    if uri.told:
        remember(uri)
    return uri.public


def telling(uri: RemoteUri) -> RemoteUri:
    """Return the URI that says how to get to a place: itself, or the nearest one known in its bucket."""
    if uri.told:
        return uri
    known = _PLACES.get(_store(uri), {})
    return known[_nearest(uri.path, known)] if known else uri


def settings_for(uri: RemoteUri) -> Mapping[str, str]:
    """Return the settings given for the nearest place of a bucket."""
    known = _SETTINGS.get(_store(uri), {})
    return known[_nearest(uri.path, known)] if known else {}


class Told:
    """What this process was told by now, for one that Spark starts; nothing of it is shown."""

    def __init__(self) -> None:
        self._places = {store: dict(known) for store, known in _PLACES.items()}
        self._settings = {store: dict(known) for store, known in _SETTINGS.items()}

    def use(self) -> None:
        """Go by it in this process."""
        for store, places in self._places.items():
            _PLACES.setdefault(store, {}).update(places)
        for store, path in [*_OF_TOLD]:  # a worker of Spark outlives what its driver goes by
            if path not in self._settings.get(store, {}):
                _OF_TOLD.discard((store, path))
                _SETTINGS.get(store, {}).pop(path, None)
        for store, settings in self._settings.items():
            known = _SETTINGS.setdefault(store, {})
            _OF_TOLD.update((store, path) for path in settings if path not in known)
            known.update(settings)


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

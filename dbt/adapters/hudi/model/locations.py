"""Folders and URIs that tables can be kept below."""

from __future__ import annotations

from pathlib import Path

from hudi_engine.errors import ConfigError
from hudi_engine.format.spelling import did_you_mean
from hudi_engine.format.storage.given import public_location
from hudi_engine.format.storage.uris import KINDS, RemoteUri

# Schemes of places that tables can be kept at; viewfs is Hadoop's, of several name nodes.
_SCHEMES = ("file", *KINDS, "hdfs", "viewfs")


def location_problems(location: str, key: str = "location_root") -> list[str]:
    """Return why no tables can be kept at a ``location_root`` of a profile or of a model, from its text alone.

    Args:
        key: Name of the setting, where it is no ``location_root``.
    """
    if not location:
        return [f"{key} is empty; name a folder or URI, or leave the key out"]
    scheme, _, rest = location.partition("://")
    if not rest:
        return []
    try:
        place = RemoteUri.parse(location).public
    except ConfigError as error:
        return [f"{key} cannot be read: {error}"]
    if scheme.lower() in _SCHEMES:
        return []
    meant = did_you_mean(scheme, _SCHEMES)
    return [
        f"{key} is {place!r}, and tables cannot be kept at {scheme}://; {meant}"
        f"legal are folders and URIs of {', '.join(f'{each}://' for each in _SCHEMES)}"
    ]


def absolute_location(location: str, project_root: str | None) -> str:
    """Return an absolute path or URI for a location of the profile or of a model.

    Args:
        project_root: Folder a relative path counts from; the working directory when None.
    """
    if "://" in location:
        return public_location(location).rstrip("/")
    if location.startswith("file:"):
        location = location[len("file:") :]
    path = Path(location).expanduser()
    return str(path if path.is_absolute() else Path(project_root or ".").resolve() / path)

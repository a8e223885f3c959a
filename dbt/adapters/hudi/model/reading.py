"""Reads raw config values and collects what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from dbt_common.exceptions import DbtRuntimeError
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
        f"legal values: folders and URIs of {', '.join(f'{each}://' for each in _SCHEMES)}"
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


class Problems:
    """All problems of one model's config, raised together."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, problem: str) -> None:
        """Note one problem; it names the value received, the legal values and the next step."""
        if problem not in self.found:
            self.found.append(problem)

    def extend(self, problems: Iterable[str]) -> None:
        """Note several problems."""
        for problem in problems:
            self.add(problem)

    def raise_if_any(self, what: str) -> None:
        """Raise one DbtRuntimeError that lists everything.

        Args:
            what: The thing configured, for example ``model analytics.orders``.
        """
        if self.found:
            count = "1 problem" if len(self.found) == 1 else f"{len(self.found)} problems"
            listed = "\n".join(f"  * {problem}" for problem in self.found)
            raise DbtRuntimeError(f"The configuration of {what} has {count}; nothing was run:\n{listed}")


def names(key: str, value: object, problems: Problems) -> tuple[str, ...]:
    """Column names given as one text (commas separate) or a list, each once; empty and None mean none."""
    if value is None or value == "":
        return ()
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) for item in items):
        problems.add(f"{key} is {value!r}; give a column name or a list of column names")
        return ()
    found = {stripped.lower(): stripped for item in reversed(items) if (stripped := item.strip().strip("`"))}
    if items and not found:
        problems.add(f"{key} is {value!r}, which names no column; give a column name, or leave it out")
    return tuple(reversed(found.values()))


def mapping(key: str, value: object, problems: Problems) -> dict[str, object]:
    """Return a mapping with text keys; None means empty."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        problems.add(f"{key} is {value!r}; give a mapping")
        return {}
    return {str(name): item for name, item in value.items()}


def boolean(key: str, value: object, problems: Problems, default: bool | None = None) -> bool | None:
    """Return true or false, given also as text."""
    if value is None:
        return default
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    problems.add(f"{key} is {value!r}; legal values: true, false")
    return default


def whole_number(key: str, value: object, problems: Problems) -> int:
    """Return a whole number of at least 0, given also as text; None means 0."""
    if value is None:
        return 0
    text = "" if isinstance(value, bool) else str(value).strip()
    if not text.isdecimal():
        problems.add(f"{key} is {value!r}; legal values: whole numbers of at least 0")
        return 0
    return int(text)


def choice(
    key: str, value: object, legal: Mapping[str, str] | Iterable[str], problems: Problems
) -> str | None:
    """One of some words, without regard to case; a mapping turns spellings into the word meant."""
    if value is None:
        return None
    spellings = legal if isinstance(legal, Mapping) else {word: word for word in legal}
    lowered = str(value).strip().lower()
    for spelling, word in spellings.items():
        if spelling.lower() == lowered:
            return word
    problems.add(f"{key} is {value!r}; legal values: {', '.join(dict.fromkeys(spellings))}")
    return None


def option_text(value: object) -> str:
    """Return a config value as the text of an option."""
    return str(value).lower() if isinstance(value, bool) else str(value)

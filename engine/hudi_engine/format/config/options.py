"""The registry of every option the engine obeys, in Hudi's own keys.

Each option is declared once: key, type, default, legal values, unit and consequence. The configuration reference in the
docs is generated from here. Keys, defaults and meanings are Apache Hudi's (its configuration reference) unless the
description states otherwise; keys that start with ``hoodie.engine.`` are this engine's own.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Collection, Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import TypeVar

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared import (
    clustering_options,
    engine_options,
    metadata_options,
    service_options,
    sync_options,
    table_options,
    telemetry_options,
    write_options,
)
from hudi_engine.format.config.option import Option, OptionValue, declared_in
from hudi_engine.format.config.own_keys import CHECKPOINT, CHECKPOINT_BEFORE
from hudi_engine.format.config.trusted_rules import RULE_PROPERTY, trust_rules
from hudi_engine.format.config.unsupported_keys import DEFINED_ELSEWHERE, UNSUPPORTED, flink_problem

_FILE = "hudi_keys.txt"
"""One group after the other: what its keys begin with, a colon, and the ends of its keys (``-`` for nothing)."""


@cache
def hudi_keys() -> frozenset[str]:
    """Return the keys."""
    found, group = set(), ""
    for word in (
        files("hudi_engine.format.config.declared").joinpath(_FILE).read_text(encoding="ascii").split()
    ):
        if word.endswith(":"):
            group = word[:-1]
        else:
            found.add(group if word == "-" else f"{group}.{word}")
    return frozenset(found)


logger = logging.getLogger(__name__)

Value = TypeVar("Value")

GROUPS = (
    table_options.TableOptions,
    write_options.WriteOptions,
    write_options.IndexOptions,
    write_options.FileOptions,
    metadata_options.MetadataOptions,
    service_options.ServiceOptions,
    service_options.CompactionOptions,
    service_options.CleanOptions,
    service_options.ArchiveOptions,
    clustering_options.ClusteringOptions,
    clustering_options.LayoutOptions,
    sync_options.SyncOptions,
    telemetry_options.TelemetryOptions,
    engine_options.MergeOptions,
    engine_options.ReadOptions,
    engine_options.WriterOptions,
    engine_options.EngineOptions,
)
DECLARED = declared_in(*GROUPS)

OPTIONS: Mapping[str, Option[OptionValue]] = MappingProxyType({option.key: option for option in DECLARED})
_ALIASES: Mapping[str, str] = MappingProxyType(
    {alias: option.key for option in DECLARED for alias in option.aliases}
)

_reported: set[str] = set()
"""Keys without effect that this process has spoken of."""


class Options:
    """Resolved, typed options: what the caller gave over the registry's defaults. Immutable."""

    def __init__(self, given: Mapping[str, OptionValue], raw: Mapping[str, str]) -> None:
        self._given = dict(given)
        self.raw: Mapping[str, str] = dict(raw)

    def is_set(self, option: Option[object]) -> bool:
        """Return whether the caller gave the option."""
        return option.key in self._given

    def __getitem__(self, option: Option[Value]) -> Value:
        """Return the value of an option such as ``CleanOptions.POLICY``, or its default."""
        value: Value = self._given.get(option.key, option.default)  # type: ignore[assignment]
        return value

    def merged(self, raw: Mapping[str, object]) -> Options:
        """Return these options with ``raw`` on top."""
        return resolve_options(laid_over(self.raw, raw))


def laid_over(*mappings: Mapping[str, Value]) -> dict[str, Value]:
    """Return options of which the later ones win, in whatever spelling of a key the earlier ones say the same."""
    joined: dict[str, Value] = {}
    for each in mappings:
        given = {canonical_key(key) for key in each}
        joined = {key: value for key, value in joined.items() if canonical_key(key) not in given}
        joined.update(each)
    return joined


def canonical_key(key: str) -> str:
    """Return the key an alias represents; other keys as they are."""
    return _ALIASES.get(key, key)


def resolve_options(raw: Mapping[str, object] | None, *, of: str = "") -> Options:
    """Check and type raw options."""
    given: dict[str, OptionValue] = {}
    texts: dict[str, str] = {}
    problems: list[str] = []
    if raw is not None and not isinstance(raw, Mapping):
        raise ConfigError(
            f"options is {raw!r}; it must be a dictionary such as {{'hoodie.index.type': 'BLOOM'}}"
        )
    for key, value in (raw or {}).items():
        if not isinstance(key, str):
            problems.append(f"option {key!r} is not a text; option keys are hoodie.* names")
            continue
        if value is None:
            continue
        texts[key] = str(value).lower() if isinstance(value, bool) else str(value)
        option = OPTIONS.get(_ALIASES.get(key, key))
        if option is None:
            problem = _not_done(key, texts[key]) or _unknown(key, of)
            if problem:
                problems.append(problem)
            continue
        try:
            parsed = option.parse(value)
        except ConfigError as error:
            problems.append(str(error))
            continue
        if given.setdefault(option.key, parsed) != parsed:
            problems.append(_two_spellings(option, texts))
    problems += _contradictions(given)
    if problems:
        raise ConfigError("; ".join(problems), tuple(problems))
    trust_rules(texts.get(RULE_PROPERTY))
    return Options(given, texts)


def _two_spellings(option: Option[OptionValue], texts: Mapping[str, str]) -> str:
    keys = [key for key in (option.key, *option.aliases) if key in texts]
    return f"{' and '.join(keys)} are one option and have different values; set one of them"


def _not_done(key: str, text: str) -> str | None:
    """Return why an option is refused; a value of which none is legal is not repeated, for a URL may hold a password."""
    harmless, advice = UNSUPPORTED.get(key, (text, ""))
    if text.strip().lower() == harmless.lower():
        return None
    what = f"{key} is {text!r}; legal values: {harmless}" if harmless else f"{key} is set; legal values: none"
    return f"{what}. {advice[0].upper()}{advice[1:]}"


def _contradictions(given: Mapping[str, OptionValue]) -> Iterator[str]:
    both = (clustering_options.ClusteringOptions.INLINE, clustering_options.ClusteringOptions.SCHEDULE_INLINE)
    if all(given.get(option.key) for option in both):
        yield f"{both[0]} and {both[1]} are both true; the first plans and runs, the second only plans: set one of them"
    smaller, greater = (
        (option.key, given.get(option.key, option.default))
        for option in (service_options.ArchiveOptions.MIN_COMMITS, service_options.ArchiveOptions.MAX_COMMITS)
    )
    if isinstance(smaller[1], int) and isinstance(greater[1], int) and smaller[1] >= greater[1]:
        yield (
            f"{greater[0]} is {greater[1]} and {smaller[0]} is {smaller[1]}; the maximum must be greater than the "
            "minimum, such as 30 and 20"
        )


def _unknown(key: str, of: str) -> str | None:
    """Return what is wrong with a key that is no option; one that is merely without effect is logged once."""
    if key in (CHECKPOINT, CHECKPOINT_BEFORE, *DEFINED_ELSEWHERE, *UNSUPPORTED) or key.startswith("_"):
        return None
    if not key.startswith("hoodie."):
        unknown = f"option {key!r} is not a hoodie.* key; see the configuration reference"
        return flink_problem(key) or unknown
    if key in hudi_keys():
        _warn_once(key, of, "option %s of Apache Hudi has no effect in this engine%s")
        return None
    near = _nearest(key)
    if near is not None:
        return f"option {key!r} is not known; did you mean {near!r}?"
    _warn_once(key, of, "option %s is not known to this engine and has no effect%s")
    return None


@lru_cache(maxsize=1000)
def _nearest(key: str) -> str | None:
    """Return the key that a misspelled one represents, one of this engine's rather than another of Hudi's."""
    known: Collection[str]
    for known in ((*OPTIONS, *_ALIASES, *DEFINED_ELSEWHERE, *UNSUPPORTED), hudi_keys()):
        for near in difflib.get_close_matches(key, known, n=1, cutoff=0.91):
            return str(near)
    return None


def _warn_once(key: str, of: str, text: str) -> None:
    if key not in _reported:
        _reported.add(key)
        logger.warning(text, key, f", given for {of}" if of else "")

"""Where the rows of a source of a project lie."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hudi_engine.errors import ConfigError
from hudi_engine.format.spelling import did_you_mean, nearest
from hudi_engine.format.storage.given import public_location
from hudi_engine.spark.catalog.foreign import FORMATS

from dbt.adapters.hudi.model.reading import option_text

HUDI = "hudi"
USING = (HUDI, *FORMATS)
_KEYS = ("location", "using", "options")
_PARTITIONS = "partitions"
# Source: the tables of data source options in Spark's documentation, generic ones and those of each format (Spark 3.5, 4).
_OF_FILES = """
    mergeSchema pathGlobFilter recursiveFileLookup modifiedBefore modifiedAfter ignoreCorruptFiles ignoreMissingFiles basePath
""".split()
_OF_TEXT = """
    encoding charset lineSep timeZone locale mode columnNameOfCorruptRecord multiLine dateFormat timestampFormat
    timestampNTZFormat enableDateTimeParsingFallback samplingRatio compression codec singleVariantColumn
""".split()
_OF_CSV = """
    sep delimiter extension quote escape comment header inferSchema preferDate enforceSchema ignoreLeadingWhiteSpace
    ignoreTrailingWhiteSpace nullValue nanValue positiveInf negativeInf maxColumns maxCharsPerColumn
    charToEscapeQuoteEscaping emptyValue unescapedQuoteHandling
""".split()
_OF_JSON = """
    primitivesAsString prefersDecimal allowComments allowUnquotedFieldNames allowSingleQuotes allowNumericLeadingZeros
    allowNonNumericNumbers allowBackslashEscapingAnyCharacter allowUnquotedControlChars dropFieldIfAllNull useUnsafeRow
""".split()
_OF_FORMAT: Mapping[str, Sequence[str]] = {
    "parquet": ("datetimeRebaseMode", "int96RebaseMode", "compression"),
    "csv": (*_OF_TEXT, *_OF_CSV),
    "json": (*_OF_TEXT, *_OF_JSON),
}
_PLACED_BY_US = ("path", "paths")
_WORDS: Mapping[str, str] = {
    "file_format": "give it as using",
    "format": "give it as using",
}


@dataclass(frozen=True)
class SourcePlace:
    """Where a source lives.

    Args:
        location: Base path of the Hudi table or folder of files; None when the name is one of the warehouse or of
            Spark's catalog.
        using: Format of the files, ``hudi`` or None for a Hudi table.
        options: Options of Spark's reader of the files.
        problem: What is wrong with the source's definition, ``""`` for nothing.
        columns: Declared columns of files, each with its type, ``""`` for none; those of folder names are in ``partitions``.
    """

    schema: str
    name: str
    location: str | None
    using: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    problem: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    partitions: tuple[tuple[str, str], ...] = ()

    @property
    def is_files(self) -> bool:
        """Whether it is a folder of files and no Hudi table."""
        return self.using in FORMATS

    @property
    def label(self) -> str:
        """The name in messages."""
        return f"{self.schema}.{self.name}"


def source_place(source: Any) -> SourcePlace:
    """Return the place of a source, with what is wrong with it in ``problem``.

    ``external`` of the table counts first, then that of its ``config``, then that of its ``meta``.
    """
    given = _external(source)
    if not given:
        return SourcePlace(source.schema, source.identifier, None)
    location, using, options = (given.get(key) for key in _KEYS)
    problem = _problem(given)
    try:
        place = public_location(str(location or ""))
    except ConfigError as error:
        place, problem = "", problem or f"external.location cannot be read: {error}"
    if problem:
        return SourcePlace(source.schema, source.identifier, place, problem=problem)
    pairs = tuple(sorted((str(key), option_text(value)) for key, value in (options or {}).items()))
    return SourcePlace(
        source.schema,
        source.identifier,
        place,
        None if using is None else str(using).lower(),
        pairs,
        columns=_columns(source, given),
        partitions=_named_types(given.get(_PARTITIONS)),
    )


def _columns(source: Any, given: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the declared columns that are in the files."""
    columns = getattr(source, "columns", None) or {}
    found = _named_types([{"name": each.name, "data_type": each.data_type} for each in columns.values()])
    in_folders = {name.lower() for name, _ in _named_types(given.get(_PARTITIONS))}
    return tuple((name, kind) for name, kind in found if name.lower() not in in_folders)


def _named_types(declared: Any) -> tuple[tuple[str, str], ...]:
    """Return columns as dbt_external_tables declares them, each with its type, ``""`` for none."""
    return tuple((str(each["name"]), str(each.get("data_type") or "")) for each in declared or ())


def given_places(manifest: Any) -> Iterator[str]:
    """Yield the places that nodes and sources of a project give themselves."""
    for node in getattr(manifest, "nodes", {}).values():
        ours = (node.config.get("meta", None) or {}).get("hudi")
        in_meta = ours.get("location_root") if isinstance(ours, Mapping) else None
        for place in (_own(node.config, "location_root"), in_meta):
            if isinstance(place, str):
                yield place
    for source in getattr(manifest, "sources", {}).values():
        place = _external(source).get("location")
        if isinstance(place, str):
            yield place


def _external(source: Any) -> dict[str, Any]:
    """Return the ``external`` of a source, the first of the spellings that dbt packages use."""
    config = getattr(source, "config", None)
    places = (
        getattr(source, "external", None),
        _own(config, "external"),
        (getattr(source, "meta", None) or {}).get("external"),
        {} if config is None else (config.get("meta", None) or {}).get("external"),
    )
    for place in places:
        given = place if isinstance(place, Mapping) else _as_mapping(place)
        found = {str(key): value for key, value in given.items() if value is not None}
        # packages put other things there too; a word that is nearly one of ours is meant for us
        if any(nearest(key, _KEYS[:2]) for key in found):
            return found
    return {}


def _own(config: Any, key: str) -> Any:
    """Return what a config has under a key; dbt's own look-up warns of a key that only its ``meta`` has."""
    return config.get(key, None) if key in (config or ()) else None


def _as_mapping(place: Any) -> Mapping[str, Any]:
    return place.to_dict(omit_none=True) if hasattr(place, "to_dict") else {}


def _problem(given: Mapping[str, Any]) -> str:
    """Return what is wrong with a source's place, ``""`` for nothing."""
    location, using, options = (given.get(key) for key in _KEYS)
    further = next((key for key in given if key not in (*_KEYS, _PARTITIONS)), None)
    if further is not None:
        word = _WORDS.get(further, f"{did_you_mean(further, _KEYS)}legal keys: {', '.join(_KEYS)}")
        return f"external.{further} is not a key that dbt-hudi reads; {word}"
    partitions = given.get(_PARTITIONS) or []
    if not isinstance(partitions, list) or not all(
        isinstance(each, Mapping) and isinstance(each.get("name"), str) for each in partitions
    ):
        return f"external.partitions is {partitions!r}; give a list such as [{{name: day, data_type: date}}], or leave it out"
    if not isinstance(location, str) or not location.strip():
        return f"external.location is {location!r}; give a folder, counted from dbt_project.yml, or a URI"
    if using is not None and str(using).lower() not in USING:
        return f"external.using is {using!r}; legal values: {', '.join(USING)}"
    if options is not None and not (
        isinstance(options, Mapping)
        and all(isinstance(value, (str, int, float)) for value in options.values())
    ):
        return f"external.options is {options!r}; give a mapping of options of Spark's reader, such as {{header: true}}"
    if options and using in (None, HUDI):
        return f"external.options are for files, and using is {using!r}; legal values with options: {', '.join(FORMATS)}"
    taken = next((key for key in options or {} if str(key).lower() in _PLACED_BY_US), None)
    if taken:
        return f"external.options has {taken!r}; external.location is the place of the files"
    return _misspelt_option(str(using).lower(), map(str, options)) if options else ""


def _misspelt_option(using: str, given: Iterable[str]) -> str:
    """Return the problem of the first option that is nearly one of a format's, ``""`` when there is none."""
    legal = (*_OF_FILES, *_OF_FORMAT[using])
    known = {name.lower() for name in legal}
    for name in given:
        near = None if name.lower() in known else nearest(name, legal)
        if near is not None:
            return f"external.options has {name!r}, which Spark's {using} reader does not know; did you mean {near!r}?"
    return ""

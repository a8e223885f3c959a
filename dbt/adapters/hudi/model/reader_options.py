"""Options of Spark's readers of files. Spark ignores a name it does not know, so one that is nearly known is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hudi_engine.format.spelling import nearest

# Source: the tables of data source options in Spark's documentation, generic ones and those of each format (Spark 3.5, 4).
_OF_FILES = (
    *("mergeSchema", "pathGlobFilter", "recursiveFileLookup", "modifiedBefore", "modifiedAfter"),
    *("ignoreCorruptFiles", "ignoreMissingFiles", "basePath"),
)
_OF_TEXT = (
    *(
        "encoding",
        "charset",
        "lineSep",
        "timeZone",
        "locale",
        "mode",
        "columnNameOfCorruptRecord",
        "multiLine",
    ),
    *("dateFormat", "timestampFormat", "timestampNTZFormat", "enableDateTimeParsingFallback"),
    *("samplingRatio", "compression", "codec"),
)
_OF_FORMAT: Mapping[str, tuple[str, ...]] = {
    "parquet": ("datetimeRebaseMode", "int96RebaseMode", "compression"),
    "csv": (
        *_OF_TEXT,
        *(
            "sep",
            "delimiter",
            "extension",
            "quote",
            "escape",
            "comment",
            "header",
            "inferSchema",
            "preferDate",
        ),
        *("enforceSchema", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "nullValue", "nanValue"),
        *("positiveInf", "negativeInf", "maxColumns", "maxCharsPerColumn", "charToEscapeQuoteEscaping"),
        *("emptyValue", "unescapedQuoteHandling", "singleVariantColumn"),
    ),
    "json": (
        *_OF_TEXT,
        *("primitivesAsString", "prefersDecimal", "allowComments", "allowUnquotedFieldNames"),
        *("allowSingleQuotes", "allowNumericLeadingZeros", "allowNonNumericNumbers"),
        *("allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars", "dropFieldIfAllNull"),
        *("useUnsafeRow", "singleVariantColumn"),
    ),
}


def misspelt_option(using: str, given: Iterable[str]) -> str:
    """Return what to say of the first option that is nearly one of a format's, ``""`` when there is none."""
    legal = (*_OF_FILES, *_OF_FORMAT[using])
    known = {name.lower() for name in legal}
    for name in given:
        near = None if name.lower() in known else nearest(name, legal)
        if near is not None:
            return f"external.options has {name!r}, which Spark's {using} reader does not know; did you mean {near!r}?"
    return ""

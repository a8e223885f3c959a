"""Some files of a folder as rows: each with its own columns, next to those that earlier files had."""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce

import pyarrow as pa
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_engine.errors import ConfigError
from hudi_engine.format.parallel import on_threads
from hudi_engine.format.storage.base import FileStatus, Storage
from hudi_engine.format.storage.factory import open_storage
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.spark.catalog.foreign import FORMATS, PlainFiles, declared_columns, nanoseconds
from hudi_engine.spark.catalog.spark_entry import Column
from hudi_engine.spark.catalog.sql_text import identifier, type_text
from hudi_engine.spark.jvm.frames import read_lines
from hudi_engine.spark.read.reason import reason_of, spark_errors
from hudi_engine.table.snapshot.manifest_file import (
    FIRST_NUMBER,
    Layout,
    ManifestEntry,
    ManifestFolder,
    format_list,
)

METADATA = "_metadata"
"""The column with path, name, size and modification time of the file that a row is of, which Spark names so too."""
MAX_GROUPS = 100
_HEADER_BYTES = 16 * 1024
_PARQUET, _CSV = FORMATS[:2]
_LOSING: dict[str, str] = {
    "ignorecorruptfiles": "bad_files='skip' sets such files aside",
    "ignoremissingfiles": "a removed file is read when it is there again",
    "modifiedbefore": "all new files are read",
    "modifiedafter": "start_after leaves out files by their names",
    "recursivefilelookup": "files of all folders below the location are read",
}
"""Options of Spark's reader by which files would be passed over that count as taken, and what there is in their place."""
_NO_LINES = {"multiline", "encoding", "charset"}
"""Options by which Spark does not look for columns in lines of UTF-8."""
_RANKS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType)


@dataclass(frozen=True)
class NewRows:
    """The rows of new files.

    Args:
        frame: Columns of these and of earlier files, and `METADATA`.
        columns: Columns to note for the files that come later, as JSON.
        bad: Files that cannot be read, with the reason.
    """

    frame: DataFrame
    columns: str
    bad: Sequence[tuple[FileStatus, str]] = ()


@dataclass(frozen=True)
class _Group:
    """Files that Spark reads together, with the columns they have.

    Args:
        has_folders: Whether folders of the files are named ``column=value``.
        nanos: SQL that makes times of the columns that Spark reads as nanoseconds.
    """

    files: Sequence[FileStatus]
    has_folders: bool
    columns: T.StructType = field(default_factory=T.StructType)
    nanos: Mapping[str, str] = field(default_factory=dict)


def read_new_files(
    spark: SparkSession,
    source: PlainFiles,
    files: Sequence[FileStatus],
    noted: str,
    *,
    sets_aside: bool,
    checks: bool = True,
) -> NewRows:
    """Return the rows of some files.

    A column has the type that the files ask for together. In CSV and JSON files it is also one that holds what earlier files had;
    columns of earlier files that these lack are null. A row of CSV or JSON that cannot be parsed makes its file a bad one, unless
    the options have a ``mode``.

    Args:
        files: Of the folder; empty ones have no rows.
        noted: The columns of earlier files, as in the note of `NewRows`; ``""`` for none.
        sets_aside: Whether bad files are left out and returned; else they fail.
        checks: Whether all files are read once more to find the bad ones that are to be set aside; else only those are found
            whose columns cannot be read.

    Raises:
        ConfigError: A bad file, options under which files would be lost, or no columns.
    """
    problem = next(
        (f"{key!r}; {_LOSING[key.lower()]}" for key in source.options if key.lower() in _LOSING), None
    )
    if problem:
        raise ConfigError(f"hudi_new_files cannot be used with the option {problem}")
    known = T.StructType.fromJson(json.loads(noted)) if noted else T.StructType()
    reading = _Reading(spark, source, open_storage(source.location), sets_aside=sets_aside)
    groups = reading.groups([each for each in files if each.size])
    columns = _columns(known, [each.columns for each in groups], holds_known=source.format != _PARQUET)
    if sets_aside and checks:
        groups = reading.sound(groups, columns)
    if not columns.fields:
        reasons = "".join(f" ({reading.uri(file)}: {reason})" for file, reason in reading.bad[:1])
        raise ConfigError(f"Spark finds no columns in the new files of {source.location}{reasons}")
    parts = [reading.frame(each, columns) for each in groups]
    frame = reduce(DataFrame.union, parts) if parts else spark.createDataFrame([], _with_metadata(columns))
    typed = {each.name: each for each in known}
    note = T.StructType([typed.get(each.name, each) for each in columns])
    return NewRows(frame, json.dumps(note.jsonValue(), separators=(",", ":")), tuple(reading.bad))


class _Reading:
    """Spark's reader over parts of a list of files."""

    def __init__(
        self, spark: SparkSession, source: PlainFiles, storage: Storage, *, sets_aside: bool
    ) -> None:
        self._spark, self._source, self._storage = spark, source, storage
        self._sets_aside = sets_aside
        self._options = {key.lower(): value for key, value in source.options.items()}
        self.bad: list[tuple[FileStatus, str]] = []

    def uri(self, file: FileStatus) -> str:
        """Return the place of a file as Spark spells it."""
        return self._storage.uri(file.path)

    def groups(self, files: Sequence[FileStatus]) -> list[_Group]:
        """Return the files in groups, each with the columns that Spark finds in all of its files.

        Spark leaves out files without the partition folders that others have, and takes the columns of a CSV file by their
        places, so files with other folders or another first line are read apart.
        """
        apart: dict[tuple[tuple[str, ...], bytes], list[FileStatus]] = {}
        for file, line in zip(files, self._first_lines(files), strict=True):
            folders = tuple(part.partition("=")[0] for part in file.path.split("/")[:-1] if "=" in part)
            apart.setdefault((folders, line), []).append(file)
        found: list[_Group] = []
        for (folders, _), together in apart.items():
            found += self._halved(_Group(together, bool(folders)), self._with_columns)
            if len(found) > MAX_GROUPS:
                raise ConfigError(
                    f"the new files of {self._source.location} have more than {MAX_GROUPS} different sets of columns; take fewer "
                    "at once with max_files"
                )
        return found

    def sound(self, groups: Sequence[_Group], columns: T.StructType) -> list[_Group]:
        """Return the groups without the files of which Spark cannot read every row."""

        def checked(group: _Group) -> _Group:
            self.frame(group, columns).write.format("noop").mode("overwrite").save()
            return group

        return [each for group in groups for each in self._halved(group, checked)]

    def frame(self, group: _Group, columns: T.StructType) -> DataFrame:
        """Return the rows of a group in the given columns, and `METADATA`."""
        wanted = {each.name.lower(): each.dataType for each in columns}
        is_parquet, has_metadata = self._source.format == _PARQUET, METADATA in wanted
        read = T.StructType()
        for each in group.columns:
            # a Parquet file has the type of each value
            kind = each.dataType if is_parquet and _is_plain(each.dataType) else wanted[each.name.lower()]
            read.add(each.name, T.LongType() if each.name in group.nanos else kind)
        frame = self._load(self._reader(group).schema(read), group)
        values = {
            each.lower(): F.expr(group.nanos[each]) if each in group.nanos else F.col(identifier(each))
            for each in frame.columns
        }
        selected = [
            values.get(each.name.lower(), F.lit(None)).cast(each.dataType).alias(each.name)
            for each in columns
        ]
        return frame.select(*selected, *([] if has_metadata else [METADATA]))

    def _with_columns(self, group: _Group) -> _Group:
        """Return a group with its columns: those that Spark finds, under the names and types that are declared for them."""
        found = [Column(each.name, type_text(each.dataType)) for each in self._found(group)]
        nanos = {}
        if self._source.format == _PARQUET:
            nanos = nanoseconds(self._storage, self._source, group.files[0])
        columns = T.StructType()
        for each in declared_columns(self._source, found):
            sql = nanos.get(each.name)
            of_time = T.TimestampNTZType() if sql and "ntz" in sql else T.TimestampType()
            columns.add(each.name, of_time if sql else T._parse_datatype_string(each.type_text))
        return replace(group, columns=columns, nanos=nanos)

    def _found(self, group: _Group) -> Sequence[T.StructField]:
        """Return the columns that Spark finds in files, and in the names of their folders."""
        reader = self._reader(group)
        if self._source.format == _PARQUET or self._options.keys() & _NO_LINES:
            return self._load(reader, group).schema.fields
        # Spark would list the files once more, each by itself, to read their lines
        lines = self._load(self._reader(group, "text"), group).select("value")
        found = read_lines(reader, self._source.format, lines).schema.fields
        if not group.has_folders:
            return found
        named = self._load(self._reader(group).schema(T.StructType()), group).schema
        of_folders = {each.name.lower(): each for each in named}
        return [*(of_folders.pop(each.name.lower(), each) for each in found), *of_folders.values()]

    def _reader(self, group: _Group, file_format: str = "") -> DataFrameReader:
        """Return a reader of the source's format, or of another, that fails at what it cannot parse."""
        usual = {"mergeSchema": "true"} if self._source.format == _PARQUET else {"mode": "FAILFAST"}
        missing = {key: value for key, value in usual.items() if key.lower() not in self._options}
        place = {} if group.has_folders else {"recursiveFileLookup": "true"}
        reader = self._spark.read.format(file_format or self._source.format)
        return reader.options(**missing, **self._source.options, **place)

    def _load(self, reader: DataFrameReader, group: _Group) -> DataFrame:
        """Return the rows of files that Spark finds in a list: of paths it would ask the storage for each, and start a task."""
        if group.has_folders and "=" in self._storage.uri():
            # a folder above is no column of the rows
            paths = [self.uri(each) for each in group.files]
            return reader.options(basePath=self._storage.uri(), __globPaths__="false").load(paths)
        entries = (ManifestEntry(self.uri(each), each.size, each.modified_ms) for each in group.files)
        # Spark reads the list at once
        with tempfile.TemporaryDirectory(prefix="hudi_new_files_") as folder:
            place = LocalStorage(folder)
            ManifestFolder(place, Layout.FLAT).create(FIRST_NUMBER, format_list(entries))
            return reader.load(place.uri(Layout.FLAT.folder))

    def _halved(self, group: _Group, read: Callable[[_Group], _Group]) -> list[_Group]:
        """Read a group; where Spark cannot, its halves, down to the bad file."""
        try:
            return [read(group)]
        except spark_errors() as error:
            files, reason = group.files, reason_of(error)
            if "cancel" in reason.lower():
                raise
            if len(files) > 1:
                middle = len(files) // 2
                halves = (replace(group, files=files[:middle]), replace(group, files=files[middle:]))
                return [each for half in halves for each in self._halved(half, read)]
            # a store that cannot be reached makes no file a bad one
            self._storage.read_start(files[0].path, 1)
            problem = f"Spark cannot read {self.uri(files[0])} as {self._source.format}: {reason}"
            if not self._sets_aside:
                raise ConfigError(
                    f"{problem}. Correct or remove it, or set it aside with bad_files='skip'"
                ) from error
            self.bad.append((files[0], reason))
            return []

    def _first_lines(self, files: Sequence[FileStatus]) -> list[bytes]:
        """Return what names the columns of each file, with a small request for each; nothing where all name them in their rows."""
        has_header = self._options.get("header", "false").lower() == "true"
        if self._source.format != _CSV or not has_header or len(files) == 1:
            return [b""] * len(files)
        comment = self._options.get("comment", "").encode()
        return on_threads(partial(_first_line, self._storage, comment), files)


def _first_line(storage: Storage, comment: bytes, file: FileStatus) -> bytes:
    """Return the first line of a CSV file that is neither empty nor a comment."""
    data = storage.read_start(file.path, _HEADER_BYTES)
    if file.path.endswith(".gz"):
        data = zlib.decompressobj(31).decompress(data)
    elif file.path.endswith((".bz2", ".zst", ".lz4")):
        codec = pa.Codec.detect(file.path).name
        with storage.open_input(file.path) as raw, pa.CompressedInputStream(raw, codec) as stream:
            data = bytes(stream.read(_HEADER_BYTES))
    lines = (line for line in data.splitlines() if line.strip())
    return next((line for line in lines if not comment or not line.startswith(comment)), b"")


def _columns(known: T.StructType, found: Sequence[T.StructType], *, holds_known: bool) -> T.StructType:
    """Return the columns of files together with those of earlier files, which come first.

    Args:
        holds_known: Whether the type of a column also holds what earlier files had.
    """
    names: dict[str, str] = {}
    kinds: dict[str, T.DataType] = {}
    for each in (column for columns in found for column in columns):
        name = each.name.lower()
        names.setdefault(name, each.name)
        if name in kinds and not holds_known:
            _check_exact(each.name, kinds[name], each.dataType)
        kinds[name] = wider(kinds[name], each.dataType) if name in kinds else each.dataType
    first = {each.name.lower(): each for each in known}
    for name, column in first.items():
        if name not in kinds:
            kinds[name] = column.dataType
        elif holds_known:
            kinds[name] = wider(column.dataType, kinds[name])
    spelled = {**names, **{name: column.name for name, column in first.items()}}
    order = [*first, *(name for name in names if name not in first)]
    return T.StructType([T.StructField(spelled[name], kinds[name]) for name in order])


def _check_exact(name: str, *kinds: T.DataType) -> None:
    """Refuse to read whole numbers of Parquet files as floating point numbers, which have 15 digits."""
    whole, parts = (T.LongType, T.DecimalType), (T.DoubleType, T.FloatType)
    if any(isinstance(each, whole) for each in kinds) and any(isinstance(each, parts) for each in kinds):
        one, other = (each.simpleString() for each in kinds)
        raise ConfigError(
            f"column {name} is {one} in some of the new Parquet files and {other} in others, and no type holds the values of "
            "both. Declare its type as data_type of the source's column, or read the files in runs of their own (max_files)"
        )


def wider(one: T.DataType, other: T.DataType) -> T.DataType:
    """Return a type that holds the values of two; text where no other does."""
    if one == other:
        return one
    if isinstance(one, T.StructType) and isinstance(other, T.StructType):
        return _columns(one, [other], holds_known=True)
    if isinstance(one, T.ArrayType) and isinstance(other, T.ArrayType):
        return T.ArrayType(wider(one.elementType, other.elementType))
    if isinstance(one, T.MapType) and isinstance(other, T.MapType) and one.keyType == other.keyType:
        return T.MapType(one.keyType, wider(one.valueType, other.valueType))
    if isinstance(one, _RANKS) and isinstance(other, _RANKS):
        return max((one, other), key=lambda each: _RANKS.index(type(each)))
    times = {type(one), type(other)}
    return T.TimestampType() if times == {T.DateType, T.TimestampType} else T.StringType()


def _is_plain(kind: T.DataType) -> bool:
    return not isinstance(kind, (T.StructType, T.ArrayType, T.MapType))


def _with_metadata(columns: T.StructType) -> T.StructType:
    """Return columns followed by that of the file, as Spark declares it."""
    if METADATA in (each.name for each in columns):
        return columns
    kinds = (*("string",) * 2, *("long",) * 3, "timestamp")
    names = ("path", "name", "size", "block_start", "block_length", "modification_time")
    parts = T.StructType()
    for name, kind in zip(names, kinds, strict=True):
        parts = parts.add(f"file_{name}", kind)
    return T.StructType([*columns.fields, T.StructField(METADATA, parts)])

"""Partition paths: from values to folder names, and what may not become a folder name.

Serves every table version (Hudi table spec, partition path text). The escaping is Hive's, not that of URLs: a
fixed set of ASCII characters becomes ``%`` and two upper-case hexadecimal digits, everything else stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hudi_engine.errors import DataError, PathEscapeError

DEFAULT_PARTITION_VALUE = "__HIVE_DEFAULT_PARTITION__"
LONGEST_FOLDER_NAME = 255
HOODIE_FOLDER = ".hoodie"

ESCAPED_CHARACTERS = (*map(chr, range(1, 32)), *"\"#%'*/:=?\\\x7f{[]^")
"""The characters that url encoding replaces, in no particular order."""

_ESCAPABLE = re.compile("[" + re.escape("".join(ESCAPED_CHARACTERS)) + "]")
_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")
_DRIVE = re.compile("[A-Za-z]:[\\\\/]")
_CONTROL = re.compile("[\x00-\x1f\x7f]")


def escape_partition_value(value: str) -> str:
    """Replace the characters of `ESCAPED_CHARACTERS` by ``%XX``."""
    return _ESCAPABLE.sub(lambda match: f"%{ord(match.group()):02X}", value)


def unescape_partition_value(text: str) -> str:
    """Undo `escape_partition_value`; a ``%`` that no two hexadecimal digits follow stays as it is."""
    return _ESCAPED.sub(lambda match: chr(int(match.group(1), 16)), text)


def partition_value_text(value: str | None, *, name: str, hive_style: bool, url_encode: bool) -> str:
    """Return folder name of one partition value; null and empty become ``__HIVE_DEFAULT_PARTITION__``."""
    text = value or DEFAULT_PARTITION_VALUE
    if url_encode:
        text = escape_partition_value(text)
    return f"{name}={text}" if hive_style else text


def partition_paths(
    columns: Sequence[tuple[str, pa.StringArray]], *, hive_style: bool, url_encode: bool
) -> pa.StringArray:
    """Build the partition path of every row."""
    paths = join_partition_paths(columns, hive_style=hive_style, url_encode=url_encode)
    for path in pc.unique(paths).to_pylist():
        check_partition_path(path)
    return paths


def join_partition_paths(
    columns: Sequence[tuple[str, pa.StringArray]], *, hive_style: bool, url_encode: bool
) -> pa.StringArray:
    """Build partition paths like `partition_paths`, without a check."""
    folders = []
    for name, values in columns:
        encoded = pc.fill_null(values, "").dictionary_encode()
        texts = pa.array(
            [
                partition_value_text(value, name=name, hive_style=hive_style, url_encode=url_encode)
                for value in encoded.dictionary.to_pylist()
            ],
            pa.string(),
        )
        folders.append(texts.take(encoded.indices))
    return folders[0] if len(folders) == 1 else pc.binary_join_element_wise(*folders, "/")


def check_partition_path(path: str) -> str:
    """Return the path if it is safe to use below the table folder."""
    problem = partition_path_problem(path)
    if problem is not None:
        raise PathEscapeError(path, problem=problem)
    return path


def check_new_partition(path: str) -> str:
    """Return the path if a folder of that name can be made below the table."""
    check_partition_path(path)
    for part in path.split("/"):
        length = len(part.encode("utf-8", "surrogatepass"))
        if length > LONGEST_FOLDER_NAME:
            raise DataError(
                f"partition folder {part[:40] + '...'!r} has {length} bytes; file systems allow {LONGEST_FOLDER_NAME}. "
                "Partition by another column, or by a shorter expression"
            )
    return path


def partition_path_problem(path: str) -> str | None:
    """Return why a path cannot be a partition path; None when it can."""
    if path == "":
        return None
    parts = path.split("/")
    if parts[0] == "" or _DRIVE.match(path):
        return "is absolute"
    if any(part in ("", ".", "..") for part in parts):
        return "has an empty part, '.' or '..'"
    if parts[0].lower() == HOODIE_FOLDER:
        return "lies in the table's metadata folder"
    if _CONTROL.search(path):
        return "holds a control character"
    return None


def split_partition_path(
    path: str, names: Sequence[str], *, hive_style: bool, url_encode: bool
) -> dict[str, str | None] | None:
    """Read the values back from a partition path.

    Returns:
        Text of each field, None for ``__HIVE_DEFAULT_PARTITION__``; or None as a whole when the folders do
        not map one to one to the fields (a value that holds ``/``, or a timestamp pattern of several
        folders).
    """
    parts = path.split("/") if path else []
    if len(parts) != len(names):
        return None
    values: dict[str, str | None] = {}
    for name, part in zip(names, parts, strict=True):
        if hive_style:
            prefix = f"{name}="
            if not part.startswith(prefix):
                return None
            part = part[len(prefix) :]
        text = unescape_partition_value(part) if url_encode else part
        values[name] = None if text == DEFAULT_PARTITION_VALUE else text
    return values

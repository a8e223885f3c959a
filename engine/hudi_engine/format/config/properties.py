r"""Java properties files: ``hoodie.properties`` and ``.hoodie_partition_metadata``.

The grammar is that of Java's ``Properties.load`` and ``Properties.store`` (ISO-8859-1, ``\\uXXXX`` escapes).
All table versions share it. The checksum rule is the one of Hudi's table config: CRC-32 of
``database.table``.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping

from hudi_engine.format.config.declared.table_options import TableOptions

TABLE_NAME_KEY = "hoodie.table.name"

_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SPELLED = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
_BLANKS = " \t\f"


def parse_properties(data: bytes) -> dict[str, str]:
    r"""Parse a Java properties file; a later line wins over an earlier one with the same key."""
    found: dict[str, str] = {}
    for line in _logical_lines(data.decode("latin-1")):
        key, value = _split(line)
        found[_unescape(key)] = _unescape(value)
    return found


def format_properties(properties: Mapping[str, str], comment: str) -> bytes:
    """Format a Java properties file, one line a key, in the order of the mapping."""
    lines = [f"#{_ascii(line)}" for line in comment.splitlines()]
    lines += [
        f"{_escape(key, is_key=True)}={_escape(value, is_key=False)}" for key, value in properties.items()
    ]
    return "".join(f"{line}\n" for line in lines).encode("latin-1")


def table_checksum(properties: Mapping[str, str]) -> int:
    """Return the CRC-32 that ``hoodie.table.checksum`` must hold (table config of Hudi)."""
    database = properties.get(TableOptions.DATABASE_NAME.key, "")
    return zlib.crc32(f"{database}.{properties.get(TABLE_NAME_KEY, '')}".encode())


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines without comments and leading blanks, continuation lines joined."""
    pieces: list[str] = []
    goes_on = False
    for natural in re.split(r"\r\n|\n|\r", text):
        line = natural.lstrip(_BLANKS)
        if not goes_on and (not line or line[0] in "#!"):
            continue
        goes_on = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        pieces.append(line[:-1] if goes_on else line)
        if not goes_on:
            yield "".join(pieces)
            pieces = []
    last = "".join(pieces)
    if last:
        yield last


def _split(line: str) -> tuple[str, str]:
    """Split a logical line at the first separator that is not escaped."""
    position = 0
    while position < len(line) and line[position] not in "=:" + _BLANKS:
        position += 2 if line[position] == "\\" else 1
    rest = line[position:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":") and rest:
        rest = rest[1:].lstrip(_BLANKS)
    return line[:position], rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_escaped_character, text)
    return _SURROGATES.sub(
        lambda pair: pair.group().encode("utf-16", "surrogatepass").decode("utf-16"), plain
    )


def _escaped_character(match: re.Match[str]) -> str:
    code = match.group(1)
    if code[0] == "u":
        if len(code) != 5:
            raise ValueError("a \\u escape in a properties file has fewer than four hexadecimal digits")
        return chr(int(code[1:], 16))
    return _NAMED.get(code, code)


def _escape(text: str, *, is_key: bool) -> str:
    pieces = []
    for position, character in enumerate(text):
        if character in "\\=:#!" or (character == " " and (is_key or position == 0)):
            pieces.append(f"\\{character}")
        else:
            pieces.append(_SPELLED.get(character) or _ascii(character))
    return "".join(pieces)


def _ascii(text: str) -> str:
    r"""Replace what is not printable ASCII by its UTF-16 code units in ``\\uXXXX`` form."""
    if text.isascii() and text.isprintable():
        return text
    pieces = []
    for character in text:
        if " " <= character <= "~":
            pieces.append(character)
        else:
            units = character.encode("utf-16-be", "surrogatepass")
            pieces += [f"\\u{units[at]:02X}{units[at + 1]:02X}" for at in range(0, len(units), 2)]
    return "".join(pieces)

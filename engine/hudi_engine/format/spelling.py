"""The legal word that a caller may have meant, in messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

_CUTOFF = 0.75
_EXAMPLES = 5


def nearest(word: str, legal: Iterable[str]) -> str | None:
    """Return the legal word that is spelled most like another, None when none is near."""
    spellings = {each.lower(): each for each in legal}
    found = difflib.get_close_matches(word.lower(), spellings, n=1, cutoff=_CUTOFF)
    return spellings[found[0]] if found else None


def letters_apart(one: str, other: str) -> int:
    """Return how many letters of a word to change, add, leave out or swap with the next to get another; case does not count."""
    one, other = one.lower(), other.lower()
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        now = [row]
        for column, wanted in enumerate(other, 1):
            least = min(last[column] + 1, now[-1] + 1, last[column - 1] + (letter != wanted))
            if row > 1 and column > 1 and letter == other[column - 2] and wanted == one[row - 2]:
                least = min(least, before[column - 2] + 1)
            now.append(least)
        before, last = last, now
    return last[-1]


def shortened(text: str, most: int = 200) -> str:
    """Return a text, or the beginning of a long one."""
    return text if len(text) <= most else f"{text[:most]}..."


def did_you_mean(word: str, legal: Iterable[str]) -> str:
    """Return the question whether a legal word was meant, with a blank behind it; ``""`` when none is near."""
    near = nearest(word, legal)
    return f"did you mean {near!r}? " if near else ""


def no_such_column(name: str, columns: Iterable[str]) -> str:
    """Return that a table has no column of a name, with the nearest one and all there are."""
    there = list(columns)
    return f"column {name!r} is not in the table; {did_you_mean(name, there)}its columns: {', '.join(there) or 'none'}"


def no_such_partitions(missing: Sequence[str], known: Iterable[str], table: str) -> str:
    """Return that partitions of a table hold no rows, with the nearest one and some that do."""
    there = sorted(known)
    near = ", ".join(there[:_EXAMPLES]) or "no partition"
    return (
        f"partition(s) {list(missing)} hold no rows in table {table!r}; {did_you_mean(missing[0], there)}it has, for "
        f"example: {near}"
    )

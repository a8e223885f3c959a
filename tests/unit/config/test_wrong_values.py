"""Every option answers a wrong value, and a key with one wrong letter, by name."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hudi_engine.errors import ConfigError
from hudi_engine.format.config.option import Option
from hudi_engine.format.config.options import OPTIONS, hudi_keys, resolve_options

WRONG = {
    "bool": ("perhaps", 5),
    "int": ("soon", 1.5, True),
    "float": ("soon", "nan", True),
    "rate": ("soon", "nan", True, 0, 1, "-0.1", 1.5),
    "choice": ("no such word", 5),
    "text": (),
    "folder": ("s3://bucket/spill", "/etc/passwd"),
}


def answer(key: str, value: object) -> str:
    """What is said of an option."""
    with pytest.raises(ConfigError) as raised:
        resolve_options({key: value})
    return str(raised.value)


@pytest.mark.parametrize("option", OPTIONS.values(), ids=lambda option: option.key)
def test_a_value_of_a_wrong_type_is_refused_with_what_is_legal(option: Option) -> None:
    for value in (*WRONG[option.kind], ["a"], {"a": 1}):
        told = answer(option.key, value)
        assert told.startswith(f"{option.key} is {value!r}; legal values: "), told
    if option.minimum is not None:
        below = option.minimum - 1
        assert f"at least {option.minimum:g}" in answer(option.key, int(below))


@pytest.mark.parametrize(
    ("text", "size"), [("64m", 67108864), ("1 GB", 1073741824), ("2KiB", 2048), ("4G", 4294967296)]
)
def test_a_size_with_a_unit_is_answered_in_bytes(text: str, size: int) -> None:
    assert f"for a size in bytes: {size} (default" in answer("hoodie.memory.merge.max.size", text)


def edits(key: str) -> Iterator[str]:
    """Spellings one edit away, behind the prefix."""
    for place in range(len("hoodie.") + 1, len(key)):
        yield key[:place] + key[place + 1 :]
        yield key[:place] + key[place] + key[place:]


@pytest.mark.parametrize("key", OPTIONS)
def test_a_key_with_one_wrong_letter_gets_a_near_one_back(key: str) -> None:
    wrong = sorted(set(edits(key)) - {*OPTIONS, *hudi_keys()})
    for misspelt in random.Random(key).sample(wrong, 2):
        told = answer(misspelt, "1")
        meant = told.partition("did you mean '")[2].partition("'")[0]
        assert repr(misspelt) in told and abs(len(meant) - len(misspelt)) <= 1, told

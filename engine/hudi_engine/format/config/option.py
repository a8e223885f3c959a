"""What one option is: key, type, default, legal values and consequence."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Number
from typing import Generic, TypeVar, overload

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.enums import Name

OptionValue = bool | int | float | str | None
_LEGAL = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "rate": "a number between 0 and 1, both excluded, such as 1e-9",
    "text": "a text",
    "folder": "the path of a local folder, such as /var/tmp/hudi",
}
_SIZE = re.compile("([0-9]+) *([kmg])(?:i?b)?", re.IGNORECASE)
_SHIFTS = {"k": 10, "m": 20, "g": 30}
Value = TypeVar("Value", covariant=True)
Flag = TypeVar("Flag", bool, bool | None)
Whole = TypeVar("Whole", int, int | None)
Text = TypeVar("Text", str, str | None)
Real = TypeVar("Real", float, float | None)
Member = TypeVar("Member", bound=Name)


@dataclass(frozen=True)
class Option(Generic[Value]):
    """One option; `Options` gives its value for the option itself, in its type.

    Args:
        kind: ``bool``, ``int``, ``float``, ``rate`` (between 0 and 1), ``text``, ``folder`` (a local one) or ``choice``.
        default: Value used when the key is absent; None means "not set".
        choices: Legal values of a ``choice`` (compared without regard to case).
    """

    key: str
    kind: str
    default: Value
    doc: str
    choices: tuple[Name, ...] = ()
    aliases: tuple[str, ...] = ()
    minimum: float | None = None
    group: str = ""

    def __set_name__(self, owner: type, name: str) -> None:
        """Take the group of the class that declares the option."""
        object.__setattr__(self, "group", getattr(owner, "GROUP", ""))

    def __str__(self) -> str:
        return self.key

    def parse(self, raw: object) -> OptionValue:
        """Turn a raw value into the typed one; raises ConfigError naming key, value and legal values."""
        if not isinstance(raw, (str, Number)):
            raise self._refuse(raw, _LEGAL.get(self.kind) or ", ".join(map(str, self.choices)))
        text = str(raw).strip()
        if self.kind == "bool":
            lowered = text.lower()
            if lowered in ("true", "false"):
                return lowered == "true"
            raise self._refuse(raw, _LEGAL["bool"])
        if self.kind == "choice":
            for choice in self.choices:
                # Hudi also takes the name of its constant: ZORDER.
                if text.lower() in (str(choice).lower(), str(choice).lower().replace("-", "")):
                    return choice
            raise self._refuse(raw, ", ".join(map(str, self.choices)))
        if self.kind in ("int", "float", "rate"):
            return self._parse_number(raw, text)
        if self.kind == "folder" and ("://" in text or os.path.isfile(text)):
            raise self._refuse(raw, _LEGAL["folder"])
        return text

    def _parse_number(self, raw: object, text: str) -> int | float:
        """Return the number in a text, within the option's bounds."""
        legal = _LEGAL[self.kind]
        if self.minimum is not None:
            legal += f" of at least {self.minimum:g}"
        try:
            number: int | float = int(text) if self.kind == "int" else float(text)
        except ValueError:
            size = _SIZE.fullmatch(text)
            if size:
                legal += f", for a size in bytes: {int(size[1]) << _SHIFTS[size[2].lower()]}"
            raise self._refuse(raw, legal) from None
        too_small = self.minimum is not None and number < self.minimum
        if not math.isfinite(number) or too_small or (self.kind == "rate" and not 0 < number < 1):
            raise self._refuse(raw, legal)
        return number

    def _refuse(self, raw: object, legal: str) -> ConfigError:
        default = repr(str(self.default) if isinstance(self.default, Name) else self.default)
        return ConfigError(
            f"{self.key} is {raw!r}; legal values: {legal} (default {default.lower() if self.kind == 'bool' else default})"
        )


def bool_option(key: str, default: Flag, doc: str, aliases: tuple[str, ...] = ()) -> Option[Flag]:
    """Declare a boolean option; without a default it may be unset."""
    return Option(key, "bool", default, doc, aliases=aliases)


def int_option(
    key: str, default: Whole, doc: str, minimum: float = 0, aliases: tuple[str, ...] = ()
) -> Option[Whole]:
    """Declare an option that is a whole number; without a default it may be unset."""
    return Option(key, "int", default, doc, minimum=minimum, aliases=aliases)


def float_option(key: str, default: Real, doc: str, minimum: float = 0) -> Option[Real]:
    """Declare an option that is a number; without a default it may be unset."""
    return Option(key, "float", default, doc, minimum=minimum)


def rate_option(key: str, default: Real, doc: str) -> Option[Real]:
    """Declare an option that is a number between 0 and 1, both excluded; without a default it may be unset."""
    return Option(key, "rate", default, doc)


def text_option(key: str, default: Text, doc: str, aliases: tuple[str, ...] = ()) -> Option[Text]:
    """Declare an option that is any text; without a default it may be unset."""
    return Option(key, "text", default, doc, aliases=aliases)


def folder_option(key: str, doc: str) -> Option[str | None]:
    """Declare an option that names a local folder, and may be unset."""
    return Option(key, "folder", None, doc)


@overload
def choice_option(
    key: str, default: Member, choices: Iterable[Member], doc: str, aliases: tuple[str, ...] = ()
) -> Option[Member]: ...
@overload
def choice_option(
    key: str, default: None, choices: Iterable[Member], doc: str, aliases: tuple[str, ...] = ()
) -> Option[Member | None]: ...
def choice_option(
    key: str, default: Member | None, choices: Iterable[Member], doc: str, aliases: tuple[str, ...] = ()
) -> Option[Member | None]:
    """Declare an option with a few legal values, members of their enum."""
    return Option(key, "choice", default, doc, choices=tuple(choices), aliases=aliases)


def declared_in(*groups: type) -> tuple[Option[OptionValue], ...]:
    """Return the options that are members of classes, in the order in which they are declared."""
    return tuple(each for group in groups for each in vars(group).values() if isinstance(each, Option))

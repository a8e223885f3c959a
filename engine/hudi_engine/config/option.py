"""What one option is: key, type, default, legal values and consequence."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Number

from hudi_engine.errors import ConfigError

OptionValue = bool | int | float | str | None
_LEGAL = {"bool": "true or false", "int": "a whole number", "float": "a number", "text": "a text"}


@dataclass(frozen=True)
class Option:
    """One option.

    Args:
        key: The ``hoodie.*`` key.
        kind: ``bool``, ``int``, ``float``, ``text`` or ``choice``.
        default: Value used when the key is absent; None means "not set".
        doc: One sentence of consequence.
        group: Section of the configuration reference.
        choices: Legal values of a ``choice`` (compared without regard to case).
        aliases: Other keys with the same meaning.
        minimum: Smallest legal number.
    """

    key: str
    kind: str
    default: OptionValue
    doc: str
    group: str
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    minimum: float | None = None

    def parse(self, raw: object) -> OptionValue:
        """Turn a raw value into the typed one; raises ConfigError naming key, value and legal values."""
        if not isinstance(raw, (str, Number)):
            raise self._refuse(raw, _LEGAL.get(self.kind) or ", ".join(self.choices))
        text = str(raw).strip()
        if self.kind == "bool":
            lowered = text.lower()
            if lowered in ("true", "false"):
                return lowered == "true"
            raise self._refuse(raw, _LEGAL["bool"])
        if self.kind == "choice":
            for choice in self.choices:
                # Hudi also takes the name of its constant: ZORDER.
                if text.lower() in (choice.lower(), choice.lower().replace("-", "")):
                    return choice
            raise self._refuse(raw, ", ".join(self.choices))
        if self.kind in ("int", "float"):
            return self._parse_number(raw, text)
        return text

    def _parse_number(self, raw: object, text: str) -> int | float:
        legal = _LEGAL[self.kind]
        if self.minimum is not None:
            legal += f" of at least {self.minimum:g}"
        try:
            number: int | float = int(text) if self.kind == "int" else float(text)
        except ValueError:
            raise self._refuse(raw, legal) from None
        if not math.isfinite(number) or (self.minimum is not None and number < self.minimum):
            raise self._refuse(raw, legal)
        return number

    def _refuse(self, raw: object, legal: str) -> ConfigError:
        return ConfigError(f"{self.key} is {raw!r}; legal values: {legal} (default {self.default!r})")


def bool_option(
    key: str, default: bool | None, group: str, doc: str, aliases: tuple[str, ...] = ()
) -> Option:
    """Declare a boolean option."""
    return Option(key, "bool", default, doc, group, aliases=aliases)


def int_option(
    key: str, default: int | None, group: str, doc: str, minimum: float = 0, aliases: tuple[str, ...] = ()
) -> Option:
    """Declare an option that is a whole number."""
    return Option(key, "int", default, doc, group, minimum=minimum, aliases=aliases)


def float_option(key: str, default: float, group: str, doc: str, minimum: float = 0) -> Option:
    """Declare an option that is a number."""
    return Option(key, "float", default, doc, group, minimum=minimum)


def text_option(key: str, default: str | None, group: str, doc: str, aliases: tuple[str, ...] = ()) -> Option:
    """Declare an option that is any text."""
    return Option(key, "text", default, doc, group, aliases=aliases)


def choice_option(
    key: str, default: str | None, choices: Iterable[str], group: str, doc: str, aliases: tuple[str, ...] = ()
) -> Option:
    """Declare an option with a few legal values."""
    legal = tuple(str(choice) for choice in choices)
    return Option(
        key, "choice", None if default is None else str(default), doc, group, choices=legal, aliases=aliases
    )

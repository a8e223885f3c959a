"""Writes docs/configuration.md from the option registry of the engine.

python3 dev.py run python docs/make_configuration.py
"""

from __future__ import annotations

from pathlib import Path

from hudi_engine.format.config.option import Option, OptionValue
from hudi_engine.format.config.options import OPTIONS

PAGE = Path(__file__).with_name("configuration.md")
_HEAD = """# Configuration reference

Every `hoodie.*` option that dbt-hudi obeys. This page is written by `docs/make_configuration.py` from the
option registry of the engine (`engine/hudi_engine/format/config/declared`); a test fails when it is out of date.

Options are given

* in a model: `{{ config(options={"hoodie.parquet.max.file.size": "134217728"}) }}`,
* to the engine: `HudiTable.create(..., options={...})`, or for one call `table.upsert(df, options={...})`.

Keys, defaults and meanings are Apache Hudi's unless the description differs; keys that start with
`hoodie.engine.` are this engine's own. A value that makes no sense is refused with the legal ones. A key that
looks like a misspelling is refused with the likely one; any other unknown key has no effect and is logged.
"""


def page() -> str:
    """Give the text of the page."""
    groups: dict[str, list[Option]] = {}
    for option in OPTIONS.values():
        groups.setdefault(option.group, []).append(option)
    parts = [_HEAD]
    for group, options in groups.items():
        rows = [_row(option) for option in options]
        head = [f"## {group}\n", "| key | values | default | effect |", "|---|---|---|---|"]
        parts.append("\n".join([*head, *rows, ""]))
    return "\n".join(parts)


def _row(option: Option[OptionValue]) -> str:
    effect = option.doc
    if option.aliases:
        effect += f" Also: {', '.join(f'`{alias}`' for alias in option.aliases)}."
    return f"| `{option.key}` | {_values(option)} | {_default(option)} | {_escaped(effect)} |"


def _values(option: Option[OptionValue]) -> str:
    if option.kind == "choice":
        return ", ".join(f"`{choice}`" for choice in option.choices)
    if option.kind == "rate":
        return "number between 0 and 1"
    if option.kind == "bool":
        return "`true`, `false`"
    if option.kind in ("int", "float"):
        kind = "whole number" if option.kind == "int" else "number"
        return kind if option.minimum is None else f"{kind} >= {option.minimum:g}"
    return "local folder" if option.kind == "folder" else "text"


def _default(option: Option[OptionValue]) -> str:
    if option.default is None:
        return "not set"
    return f"`{str(option.default).lower() if isinstance(option.default, bool) else option.default}`"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.name}: {len(OPTIONS)} options")

"""What is legal is written down once, and every option that is declared does something."""

from __future__ import annotations

import ast
from collections import defaultdict
from enum import Enum
from pathlib import Path

from hudi_engine.format.config import enums
from hudi_engine.format.config.option import Option
from hudi_engine.format.config.options import DECLARED, GROUPS
from hudi_engine.table.write.define import definition as properties

ROOT = Path(__file__).resolve().parents[3]
HOME = ROOT / "engine/hudi_engine/format/config/enums.py"
DECLARATIONS = ROOT / "engine/hudi_engine/format/config/declared"
CODE = [
    path
    for room in ("engine/hudi_engine", "dbt/adapters/hudi")
    for path in (ROOT / room).rglob("*.py")
    if path != HOME
]
# Other things of that name: the code of dbt's answer, metadata for all files.
OTHERS = {
    ("hudi_files.py", "ALL"),
    ("services.py", "COMPACT"),
    ("services.py", "CLUSTER"),
}

MEMBERS = {
    option.key: f"{group.__name__}.{name}"
    for group in GROUPS
    for name, option in vars(group).items()
    if isinstance(option, Option)
}


def texts(path: Path) -> list[str]:
    """Return the string literals of a program."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def registries() -> list[type[Enum]]:
    return [each for each in vars(enums).values() if isinstance(each, type) and issubclass(each, enums.Name)]


def test_legal_values_are_typed_in_their_registry_alone() -> None:
    # Words in small letters, such as parquet, are words of other things too.
    values = {str(member) for registry in registries() for member in registry if str(member).isupper()}
    found = defaultdict(list)
    for path in CODE:
        for text in texts(path):
            if text in values and (path.name, text) not in OTHERS:
                found[text].append(path.name)

    assert len(values) > 50
    assert dict(found) == {}


def test_the_legal_values_of_an_option_are_those_of_a_registry() -> None:
    legal = {tuple(map(str, registry)) for registry in registries()} | {
        tuple(map(str, enums.DECLARED_MERGE_MODES))
    }

    assert {
        option.key for option in DECLARED if option.kind == "choice" and option.choices not in legal
    } == set()


def members_read(path: Path) -> set[str]:
    """Return the names such as ``CleanOptions.POLICY`` that a program speaks of."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }


def test_no_code_types_the_key_of_an_option_again() -> None:
    keys = {option.key for option in DECLARED}
    # Keys that a definition may name in other words, or that are refused, are typed there.
    others = {"unsupported_keys.py"}
    found = {
        f"{path.relative_to(ROOT)}: {text}"
        for path in CODE
        if DECLARATIONS not in path.parents and path.name not in others
        for text in texts(path)
        if text in keys
    }

    assert found == set()


def test_every_declared_option_is_read_by_the_code() -> None:
    read = set().union(*(members_read(path) for path in CODE if DECLARATIONS not in path.parents))
    words = {text for path in CODE if DECLARATIONS not in path.parents for text in texts(path)}
    # All settings of the timestamp key generator are kept with the table, and read there under shorter names.
    kept = {
        option.key
        for option in DECLARED
        if option.key.startswith(properties._STICKY_PREFIXES) and option.key.split(".", 3)[-1] in words
    }

    # An option with one legal value is there to refuse the others.
    choosable = {option.key for option in DECLARED if len(option.choices) != 1}

    assert {key for key in choosable - kept if MEMBERS[key] not in read} == set()


def test_every_declared_option_is_named_in_a_test() -> None:
    tests = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    tested = "\n".join(path.read_text(encoding="utf-8") for path in tests)
    spelled = tested.replace("__", ".")  # as keyword arguments: parquet__page__size

    def is_named(key: str) -> bool:
        return key in spelled or key.removeprefix("hoodie.") in spelled

    assert {
        option.key
        for option in DECLARED
        if not any(map(is_named, (option.key, MEMBERS[option.key], *option.aliases)))
    } == set()

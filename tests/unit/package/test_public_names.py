"""What `import hudi_engine` offers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import hudi_engine
import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", ROOT / "engine/README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_public_names_are_sorted_and_each_once() -> None:
    assert list(hudi_engine.__all__) == sorted(set(hudi_engine.__all__))


@pytest.mark.parametrize("name", hudi_engine.__all__)
def test_every_public_name_can_be_imported_and_is_documented(name: str) -> None:
    found = getattr(hudi_engine, name)

    assert found.__name__ == name
    assert found.__doc__


def test_every_error_a_caller_may_catch_is_public() -> None:
    from hudi_engine import errors

    kinds = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and kind.__module__ == errors.__name__
    }

    assert kinds <= set(hudi_engine.__all__)


def test_names_that_are_not_public_are_refused() -> None:
    with pytest.raises(AttributeError, match="'hudi_engine' has no attribute 'HudiTabel'"):
        _ = hudi_engine.HudiTabel  # type: ignore[attr-defined]


def test_importing_the_engine_imports_neither_spark_nor_pandas_nor_arrow() -> None:
    code = "import sys, hudi_engine; print(sorted({'pyspark', 'pandas', 'pyarrow'} & set(sys.modules)))"
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "engine", capture_output=True, text=True, check=True
    )

    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_pages_import_public_names_only(page: Path) -> None:
    imports = re.findall(
        r"^\s*(?:from (hudi_engine\S*) import ([\w, ]+)|import (hudi_engine\.\S+))",
        page.read_text("utf-8"),
        re.M,
    )
    deep = [module or plain for module, _, plain in imports if (module or plain) != "hudi_engine"]
    unknown = {name.strip() for _, names, _ in imports for name in names.split(",") if name.strip()}

    assert deep == []
    assert unknown <= set(hudi_engine.__all__)

"""The packages that are made of this tree."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import hudi_engine
import pytest
import yaml

from dbt.adapters.hudi.__version__ import version

ROOT = Path(__file__).resolve().parents[3]
NEEDED_TO_READ = (
    "pyarrow",
    "numpy",
    "numpy.libs",
    "pandas",
    "fastavro",
    "dateutil",
    "pytz",
    "tzdata",
    "six.py",
)
NEEDS_SPARK = {
    "ClauseRows",
    "DirectoryCatalog",
    "EventWindow",
    "HudiTable",
    "MergeClauses",
    "When",
    "build_table",
    "rebuild_table",
}


def wheel(source: Path, work: Path) -> Path:
    """Build a wheel of a copy of ``source``, so that the tree stays clean."""
    copy = work / "tree"
    left_out = shutil.ignore_patterns(
        ".*", "__pycache__", "*.egg-info", "tests", "build", "warehouse", "target"
    )
    shutil.copytree(source, copy, ignore=left_out)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "-w", str(work), str(copy)], check=True, capture_output=True, timeout=120)
    return next(work.glob("*.whl"))


@pytest.fixture(scope="module")
def engine_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel(ROOT / "engine", tmp_path_factory.mktemp("engine"))


@pytest.fixture(scope="module")
def adapter_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel(ROOT, tmp_path_factory.mktemp("adapter"))


def read(package: Path, pattern: str) -> str:
    with zipfile.ZipFile(package) as archive:
        name = next(each for each in archive.namelist() if re.fullmatch(pattern, each))
        return archive.read(name).decode("utf-8")


def names(package: Path) -> set[str]:
    with zipfile.ZipFile(package) as archive:
        return set(archive.namelist())


def test_wheels_hold_every_file_of_the_engine(adapter_wheel: Path, engine_wheel: Path) -> None:
    folder = ROOT / "engine"
    files = {
        path.relative_to(folder).as_posix()
        for path in (folder / "hudi_engine").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {path for path in files if path.endswith((".css", ".js", ".txt"))}
    for each in (adapter_wheel, engine_wheel):
        assert files - names(each) == set(), each.name


def test_the_version_is_said_once(adapter_wheel: Path, engine_wheel: Path) -> None:
    project = yaml.safe_load((ROOT / "dbt/include/hudi/dbt_project.yml").read_text("utf-8"))

    assert version == hudi_engine.__version__
    assert project["version"] == hudi_engine.__version__
    assert adapter_wheel.name.startswith(f"dbt_hudi-{version}-")
    assert engine_wheel.name.startswith(f"hudi_engine-{version}-")


def test_the_package_holds_adapter_macros_and_engine_and_nothing_else(adapter_wheel: Path) -> None:
    held = names(adapter_wheel)
    sources = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "dbt").rglob("*")
        if path.suffix in (".py", ".sql", ".yml")
    } | {str(path.relative_to(ROOT / "engine")) for path in (ROOT / "engine/hudi_engine").rglob("*.py")}
    places = {name.split("/")[0] for name in held if ".dist-info/" not in name}

    assert sources - held == set()
    assert places == {"dbt", "hudi_engine"}
    assert {"dbt/adapters/hudi/py.typed", "hudi_engine/py.typed"} <= held


def test_the_engine_by_itself_holds_all_of_the_engine_and_nothing_of_dbt(engine_wheel: Path) -> None:
    held = names(engine_wheel)
    sources = {str(path.relative_to(ROOT / "engine")) for path in (ROOT / "engine/hudi_engine").rglob("*.py")}

    assert sources - held == set()
    assert not any(name.startswith("dbt") for name in held)
    assert "dbt" not in read(engine_wheel, r".*\.dist-info/METADATA").partition("\n\n")[0].replace(
        "dbt-hudi", ""
    )


def test_the_engine_by_itself_works_where_neither_dbt_nor_spark_is(
    engine_wheel: Path, tmp_path: Path
) -> None:
    home = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    packages = next((home / "lib").glob("python*/site-packages"))
    for name in NEEDED_TO_READ:
        found = Path(sysconfig.get_paths()["purelib"]) / name
        if found.exists():
            (packages / name).symlink_to(found)
    with zipfile.ZipFile(engine_wheel) as archive:
        archive.extractall(packages)
    code = (
        "import hudi_engine\n"
        "missing = []\n"
        "for name in hudi_engine.__all__:\n"
        "    try: getattr(hudi_engine, name)\n"
        "    except ImportError as error:\n"
        "        assert str(error).endswith(\"pip install 'hudi-engine[spark]'\"), error\n"
        "        missing.append(name)\n"
        "import importlib.util as u\n"
        "print(u.find_spec('dbt'), u.find_spec('pyspark'), hudi_engine.__file__)\n"
        "print(*missing)\n"
    )
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    shown = subprocess.run(
        [str(home / "bin/python"), "-c", code], env=clean, cwd=tmp_path, capture_output=True, text=True
    )

    assert shown.stderr == ""
    assert shown.stdout.split()[:2] == ["None", "None"]
    assert str(packages) in shown.stdout
    assert set(shown.stdout.splitlines()[1].split()) == NEEDS_SPARK


def test_the_readme_of_a_package_index_has_no_link_that_leads_nowhere(adapter_wheel: Path) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", read(adapter_wheel, r".*\.dist-info/METADATA"))

    assert targets
    assert [target for target in targets if "://" not in target] == []


def test_links_lead_into_the_repository_the_package_is_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://example.org")
    monkeypatch.setenv("GITHUB_REPOSITORY", "team/dbt-hudi")
    made = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")
    home = made["home"]()

    assert made["page"]("see [Install](docs/install.md) and [dbt](https://dbt.com)", home) == (
        "see [Install](https://example.org/team/dbt-hudi/blob/main/docs/install.md) and [dbt](https://dbt.com)"
    )
    assert made["links"](home)["Issues"] == "https://example.org/team/dbt-hudi/issues"


@pytest.mark.parametrize("name", ["LICENSE", "NOTICE"])
def test_both_packages_carry_the_same_licence_and_notice(
    name: str, adapter_wheel: Path, engine_wheel: Path
) -> None:
    text = (ROOT / name).read_text("utf-8")

    assert read(adapter_wheel, rf"dbt_hudi.*\.dist-info/.*{name}") == text
    assert read(engine_wheel, rf"hudi_engine.*\.dist-info/.*{name}") == text

"""What `dev.py` is made of."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import commands, console, environments, scratch
from tools.environments import MAIN, SPARK35, for_demo
from tools.preparation import Preparation
from tools.tiers import TIERS, Tier, pick

ROOT = Path(__file__).resolve().parents[3]


def names(*words: str, long: bool = False) -> list[str]:
    def complain(message: str) -> None:
        raise AssertionError(message)

    return [tier.name for tier in pick(list(words), complain, long=long)]


def test_long_tiers_run_only_when_they_are_asked_for() -> None:
    everything = [tier.name for tier in TIERS]

    assert names() == [tier.name for tier in TIERS if not tier.long]
    assert names(long=True) == everything
    assert names("long") == ["long"]
    assert names("unit", long=True) == ["unit", *(tier.name for tier in TIERS if tier.long)]


def test_the_long_tier_runs_what_the_others_leave_out() -> None:
    long = next(tier for tier in TIERS if tier.name == "long")
    everywhere = [command for command in long.commands if "tests" in command]

    assert [command[-4:] for command in everywhere] == [("--long", "-m", "long", "tests")]
    assert not [tier for tier in TIERS if not tier.long and any("--long" in each for each in tier.commands)]


def test_a_tier_beside_another_begins_when_that_is_set_up_and_is_told_of_after_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    begun = threading.Event()

    def run_tier(tier: Tier, ready: Callable[[], None]) -> commands._Outcome:
        console.say(f"{tier.name} begins")
        ready()
        if tier.name == "style":
            begun.set()
        assert tier.name != "unit" or begun.wait(20)
        console.say(f"{tier.name} ends")
        return commands._Outcome(tier, seconds=1)

    found = commands._run_all(TIERS[:3], run_tier)
    lines = [line.removeprefix("==> ") for line in capsys.readouterr().out.splitlines()]

    assert lines == [
        "unit begins", "    beside it: style", "unit ends", "style begins", "style ends", "faults begins", "faults ends",
    ]  # fmt: skip
    assert [(each.tier.name, each.failed) for each in found] == [("style", []), ("unit", []), ("faults", [])]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_tier_beside_another_that_breaks_has_failed() -> None:
    def run_tier(tier: Tier, ready: Callable[[], None]) -> commands._Outcome:
        ready()
        assert tier.name == "unit"
        return commands._Outcome(tier)

    style, unit = commands._run_all(TIERS[:2], run_tier)

    assert (style.failed, unit.failed) == (["was not run to its end"], [])


def test_a_tier_runs_by_itself_when_the_one_that_it_runs_beside_is_not_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run_tier(tier: Tier, ready: Callable[[], None]) -> commands._Outcome:
        console.say(tier.name)
        ready()
        return commands._Outcome(tier)

    commands._run_all([tier for tier in TIERS if tier.name in ("style", "faults")], run_tier)

    assert capsys.readouterr().out == "==> style\n==> faults\n"


def test_tables_of_tests_are_kept_in_memory_only_where_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "_MEMORY", tmp_path)
    monkeypatch.setattr(scratch, "_ROOM_BYTES", 1)
    with scratch.scratch() as variables:
        folder = Path(variables["PYTEST_DEBUG_TEMPROOT"])
        assert folder.parent == tmp_path and folder.is_dir()
    assert not folder.exists()
    monkeypatch.setattr(scratch, "_ROOM_BYTES", 10**18)
    with scratch.scratch() as variables:
        assert variables == {}


def test_a_tier_of_the_main_environment_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(Preparation, "_set_up_second", lambda self: done.append("second"))
    by_name = {tier.name: tier for tier in TIERS}

    Preparation([by_name["unit"], by_name["spark"]]).wait_for(by_name["spark"])
    assert done == []
    Preparation([by_name["unit"], by_name["judge"]]).wait_for(by_name["judge"])
    assert done == ["second"]


def test_an_unknown_tier_is_told_with_the_known_ones() -> None:
    said: list[str] = []

    pick(["units"], said.append)

    assert said == [f"there is no tier 'units'; the tiers are: {', '.join(tier.name for tier in TIERS)}"]


def test_the_demo_needs_no_tools_of_developers() -> None:
    demo = (ROOT / for_demo(MAIN).requirements).read_text("utf-8")

    assert not {"mypy", "ruff", "moto", "pytest", "matplotlib"} & set(demo.split())
    assert f"-r {for_demo(MAIN).requirements}" in (ROOT / MAIN.requirements).read_text("utf-8")


@pytest.mark.parametrize("environment", [MAIN, SPARK35], ids=lambda each: each.folder)
def test_an_environment_with_everything_serves_the_demo_and_is_not_made_anew(
    environment: environments.Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    stamp = tmp_path / environment.folder / "dbt-hudi.stamp"
    python = environments.replace(environment, folder=str(tmp_path / environment.folder))
    (python.bin).mkdir(parents=True)
    python.python.touch()
    monkeypatch.setattr(environments, "_make", lambda each: steps.append("make"))
    monkeypatch.setattr(environments, "_install", lambda each: steps.append(f"install {each.requirements}"))
    monkeypatch.setattr(environments, "ensure_java", lambda each: Path("/java"))

    environments.ensure(for_demo(python))
    assert (steps, stamp.exists()) == (["make", "install requirements-demo.txt"], True)
    environments.ensure(for_demo(python))
    assert len(steps) == 2
    environments.ensure(python)
    assert steps[2:] == ["install requirements-dev.txt"]
    environments.ensure(for_demo(python))
    environments.ensure(python)
    assert len(steps) == 3

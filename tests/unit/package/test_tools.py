"""What `dev.py` is made of."""

from __future__ import annotations

import threading
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


def test_two_tiers_run_at_a_time_and_what_one_says_stays_together(capsys: pytest.CaptureFixture[str]) -> None:
    both, third = threading.Barrier(2), threading.Event()
    whole: dict[str, bool] = {}

    def run_tier(tier: Tier, alone: bool) -> commands._Outcome:
        whole[tier.name] = alone
        console.say(f"{tier.name} works")
        if tier is TIERS[2]:
            third.set()
        else:
            both.wait(20)
        # The first ends only when the third has come after the second.
        assert tier is not TIERS[0] or third.wait(20)
        console.aside(f"{tier.name} is half through")
        console.say(f"{tier.name} ends")
        return commands._Outcome(tier, seconds=1)

    found = commands._run_all(TIERS[:3], run_tier)
    lines = capsys.readouterr().out.splitlines()

    for tier in TIERS[:3]:
        at = lines.index(f"==> {tier.name} works")
        assert lines[at + 1] == f"==> {tier.name} ends"
        assert lines.index(f"==> {tier.name} begins") < lines.index(f"{tier.name} is half through") < at
    assert [(each.tier, each.failed) for each in found] == [(tier, []) for tier in TIERS[:3]]
    assert whole == {tier.name: False for tier in TIERS[:3]}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_tier_that_breaks_has_failed_and_the_others_run(capsys: pytest.CaptureFixture[str]) -> None:
    def run_tier(tier: Tier, alone: bool) -> commands._Outcome:
        console.say(f"{tier.name} works")
        assert tier is not TIERS[0]
        return commands._Outcome(tier)

    found = commands._run_all(TIERS[:4], run_tier)

    assert [each.failed for each in found] == [["was not run to its end"], [], [], []]
    assert f"==> {TIERS[0].name} works" in capsys.readouterr().out


def test_a_tier_by_itself_and_a_long_one_have_both_cores() -> None:
    def whole(*words: str, long: bool = False) -> dict[str, bool]:
        seen: dict[str, bool] = {}

        def run_tier(tier: Tier, alone: bool) -> commands._Outcome:
            seen[tier.name] = alone
            return commands._Outcome(tier)

        commands._run_all([tier for tier in TIERS if tier.name in words], run_tier)
        return seen

    assert whole("spark") == {"spark": True}
    assert whole("spark", "dbt", "long") == {"spark": False, "dbt": False, "long": True}
    by_name = {tier.name: tier for tier in TIERS}
    processes = {
        (name, alone): {command[command.index("-n") + 1] for command in by_name[name].lines(alone=alone)}
        for name in ("spark", "unit")
        for alone in (True, False)
    }
    assert processes["spark", True] == {"2"} and processes["spark", False] == {"1"}
    assert processes["unit", False] == {"2"}, "it starts no session"
    assert by_name["style"].lines(alone=True) == by_name["style"].commands


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

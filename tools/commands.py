"""The commands of `dev.py`."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tools.apache_hudi import ensure_apache_hudi
from tools.changelog import release
from tools.class_archive import java_variables
from tools.console import (
    CACHE,
    SetupError,
    aside,
    detail,
    in_background,
    kept_back,
    say,
    seconds_since,
    shown,
)
from tools.environments import MAIN, SPARK35, ensure, for_demo
from tools.preparation import Preparation
from tools.scratch import scratch
from tools.tiers import GATE_SECONDS, TIERS, Tier, pick

_COUNT = re.compile(r"(\d+) (passed|failed|skipped|errors?|xfailed|xpassed)\b")
_PROGRESS = re.compile(r"\[ *\d+%\]\s*$")
_AT_A_TIME = 3
_CLOSING = re.compile(r"^=*\s*(\d+ \w+(?:, )?)+ in [\d.]+s")


def run(arguments: list[str], usage: str) -> int:
    """Run the command that the arguments name; returns the exit code of the process."""
    commands = {
        "setup": _setup,
        "demo": _demo,
        "test": _test,
        "bench": _bench,
        "reliability": _reliability,
        "docs": _docs,
        "run": _run,
        "changelog": _changelog,
    }
    if not arguments or arguments[0] not in commands:
        helps = ["help", "--help", "-h"]
        if arguments and arguments[0] not in helps:
            near = difflib.get_close_matches(arguments[0], [*commands, *helps], n=1)
            print(f"there is no command {arguments[0]!r}{f'; did you mean {near[0]!r}?' if near else ''}\n")
        print(usage.strip())
        print("\ntiers of `test`:")
        for tier in TIERS:
            print(f"  {tier.name:8} {tier.what}")
        return 0 if arguments[:1] and arguments[0] in helps else 2
    try:
        return commands[arguments[0]](arguments[1:])
    except SetupError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _setup(arguments: list[str]) -> int:
    start = time.monotonic()
    env = ensure(MAIN)
    say(f"ready: {MAIN.folder}, Java in {env['JAVA_HOME']} ({seconds_since(start)})")
    if "all" in arguments:
        ensure(SPARK35)
        _announce(ensure_apache_hudi())
    return 0


def _demo(arguments: list[str]) -> int:
    env = ensure(for_demo(MAIN))
    command = [str(MAIN.python), "integration_tests/run.py", *arguments]
    if "--quick" in arguments or {"-h", "--help"} & set(arguments):
        return subprocess.run(command, env=env, cwd=MAIN.path.parent).returncode
    # Apache Hudi reads only at the end: it is fetched while the tables are built, and the demo waits for this file to go.
    pending = CACHE / "apache-hudi.pending"
    pending.parent.mkdir(parents=True, exist_ok=True)
    pending.touch()
    left_out: list[str | None] = []

    def fetch() -> None:
        try:
            with in_background():
                left_out.append(ensure_apache_hudi(for_demo(SPARK35)))
        finally:
            pending.unlink(missing_ok=True)

    fetching = threading.Thread(target=fetch)
    fetching.start()
    code = subprocess.run(command, env=env, cwd=MAIN.path.parent).returncode
    fetching.join()
    for reason in left_out:
        _announce(reason)
    return code


def _bench(arguments: list[str]) -> int:
    # All systems are measured on one Spark, the newest that each of them runs on.
    chosen = [each for each in arguments[:1] if (MAIN.path.parent / "benchmarks" / f"{each}.py").exists()]
    module = f"benchmarks.{chosen[0] if chosen else 'run'}"
    command = [str(SPARK35.python), "-m", module, *arguments[len(chosen) :]]
    return subprocess.run(command, env=ensure(SPARK35), cwd=MAIN.path.parent).returncode


def _reliability(arguments: list[str]) -> int:
    env = ensure(MAIN)
    command = [str(MAIN.python), "-m", "tests.reliability", *arguments]
    path = os.pathsep.join(["engine", env.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return subprocess.run(command, env={**env, "PYTHONPATH": path}, cwd=MAIN.path.parent).returncode


def _docs(arguments: list[str]) -> int:
    env = ensure(MAIN) | _quiet()
    for command in (
        ["python", "docs/make_configuration.py"],
        ["mkdocs", "build", "--strict", "-q", *arguments],
    ):
        code = subprocess.run(
            [str(MAIN.bin / command[0]), *command[1:]], env=env, cwd=MAIN.path.parent
        ).returncode
        if code != 0:
            return code
    say("the site is in .cache/site (mkdocs serve shows it while you write)")
    return 0


def _run(arguments: list[str]) -> int:
    if not arguments:
        raise SetupError("`run` needs a command, for example: python3 dev.py run dbt --version")
    env = ensure(MAIN)
    if shutil.which(arguments[0], path=env["PATH"]) is None:
        raise SetupError(
            f"there is no command {arguments[0]!r} in {MAIN.folder}; its commands are in {MAIN.folder}/bin"
        )
    return subprocess.run(arguments, env=env).returncode


def _changelog(arguments: list[str]) -> int:
    if len(arguments) != 1:
        raise SetupError("`changelog` needs the version to make, for example: python3 dev.py changelog 1.2.3")
    release(arguments[0])
    return 0


def _announce(left_out: str | None) -> None:
    if left_out is not None:
        say(f"LEFT OUT: Apache Hudi as independent reader and writer: {left_out}")


@dataclass
class _Outcome:
    """What a tier did."""

    tier: Tier
    failed: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    left_out: str | None = None

    def read(self, line: str) -> None:
        """Add up the counts of pytest's closing line, and show how far it is."""
        if _PROGRESS.search(line):
            aside(f"    {self.tier.name:8}{line.strip()[-6:]}")
        plain = re.sub(r"\x1b\[[\d;]*m", "", line).strip()
        if _CLOSING.match(plain):
            for number, word in _COUNT.findall(plain):
                self.counts["errors" if word == "error" else word] += int(number)


def _test(arguments: list[str]) -> int:
    long = "--long" in arguments
    arguments = [each for each in arguments if each != "--long"]

    def complain(message: str) -> None:
        raise SetupError(message)

    start = time.monotonic()
    tiers = pick(arguments, complain, long=long)
    preparation = Preparation(tiers)
    # The first of them is told step by step; what goes wrong here comes up again at each tier that needs it.
    with contextlib.suppress(SetupError):
        if any(tier.environment is MAIN for tier in tiers):
            ensure(MAIN)
            preparation.main_is_ready()
    with scratch() as variables:
        outcomes = _run_all(tiers, lambda tier, alone: _run_tier(tier, preparation, variables, alone))
    print(f"\n{'tier':10}{'result':10}{'seconds':>8}  tests", flush=True)
    for outcome in outcomes:
        counts = ", ".join(f"{number} {word}" for word, number in outcome.counts.items())
        print(
            f"{outcome.tier.name:10}{'FAILED' if outcome.failed else 'ok':10}{outcome.seconds:8.0f}  {counts}"
        )
    for outcome in outcomes:
        for command in outcome.failed:
            print(f"FAILED: {outcome.tier.name}: {command}")
        if outcome.left_out:
            print(f"LEFT OUT: {outcome.tier.name}: {outcome.left_out}")
    total: Counter[str] = sum((outcome.counts for outcome in outcomes), Counter())
    failed = total["failed"] + total["errors"]
    aim = "" if arguments or long else f" (on two idle cores at most {GATE_SECONDS} s)"
    print(f"all tiers in {seconds_since(start)}{aim}")
    print(f"{total['passed']} passed, {failed} failed, {total['skipped']} skipped", flush=True)
    return 1 if any(outcome.failed for outcome in outcomes) else 0


def _run_all(tiers: Sequence[Tier], run_tier: Callable[[Tier, bool], _Outcome]) -> list[_Outcome]:
    """Run tiers some at a time, each in one process; long ones, and one that is asked for by itself, have both cores.

    Args:
        tiers: The tiers, in the order they are begun.
        run_tier: Runs one of them; told whether it is alone.
    """
    outcomes = {tier.name: _Outcome(tier, failed=["was not run to its end"]) for tier in tiers}
    short = [tier for tier in tiers if not tier.long]
    waiting = deque(short if len(short) > 1 else ())

    def one_after_the_other() -> None:
        with contextlib.suppress(IndexError):
            while True:
                run_aside(waiting.popleft())

    def run_aside(tier: Tier) -> None:
        say(f"{tier.name} begins")
        lines: list[str] = []
        try:
            with kept_back(lines):
                outcomes[tier.name] = run_tier(tier, False)
        finally:
            print("\n".join(lines), flush=True)

    lanes = [threading.Thread(target=one_after_the_other, daemon=True) for _ in range(_AT_A_TIME)]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    for tier in tiers:
        if tier.long or len(short) == 1:
            outcomes[tier.name] = run_tier(tier, True)
    return [outcomes[tier.name] for tier in tiers]


def _run_tier(tier: Tier, preparation: Preparation, variables: dict[str, str], alone: bool) -> _Outcome:
    """Set a tier up and run its commands."""
    outcome = _Outcome(tier)
    start = time.monotonic()
    say(f"{tier.name}: {tier.what}")
    preparation.wait_for(tier)
    try:
        # The tests themselves run in the main environment; the other one holds PySpark 3.5.
        env = ensure(tier.environment)
        if tier.needs_apache_hudi:
            outcome.left_out = ensure_apache_hudi()
            _announce(outcome.left_out)
        env |= java_variables(tier.environment, env)
    except SetupError as error:
        detail(str(error))
        outcome.failed.append("set-up")
        return outcome
    for command in tier.lines(alone=alone):
        detail("$ " + " ".join(command))
        program = tier.environment.bin / command[0]
        if shown([str(program), *command[1:]], {**env, **variables, **_quiet()}, outcome.read) != 0:
            outcome.failed.append(" ".join(command))
    outcome.seconds = time.monotonic() - start
    return outcome


def _quiet() -> dict[str, str]:
    return {"DO_NOT_TRACK": "1", "NO_COLOR": os.environ.get("NO_COLOR", "1"), "NO_MKDOCS_2_WARNING": "1"}

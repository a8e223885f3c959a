"""Setting up what later tiers need beside the ones that run: the second environment, archives of classes, Apache Hudi."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable

from tools.apache_hudi import ensure_apache_hudi
from tools.class_archive import ensure_class_archive
from tools.console import SetupError, detail, in_background
from tools.environments import MAIN, SPARK35, Environment, ensure
from tools.tiers import Tier


class Preparation:
    """Downloads and installs in the background, without a word on the screen.

    What goes wrong here comes up again, and is told, when the tier that needs it sets itself up.

    Args:
        tiers: The tiers that are going to run.
    """

    def __init__(self, tiers: Iterable[Tier]) -> None:
        tiers = tuple(tiers)
        self._needs_apache_hudi = any(tier.needs_apache_hudi for tier in tiers)
        self._archives = len(tiers) > 2
        self._second: threading.Thread | None = None
        self._classes: threading.Thread | None = None
        if any(map(needs_more, tiers)):
            self._second = _in_thread(self._set_up_second)

    def main_is_ready(self) -> None:
        """Start what needs the main environment, which the first tier has made."""
        if self._archives and self._classes is None:
            self._classes = _in_thread(lambda: _archive(MAIN))

    def wait_for(self, tier: Tier) -> None:
        """Return when what a tier needs is there, or has failed."""
        if self._second is not None and needs_more(tier):
            if self._second.is_alive():
                detail(f"waiting for {SPARK35.folder} and what runs in it")
            self._second.join()

    def _set_up_second(self) -> None:
        _archive(SPARK35)
        if self._needs_apache_hudi:
            ensure_apache_hudi()


def needs_more(tier: Tier) -> bool:
    """Whether a tier needs more than the main environment."""
    return tier.environment is not MAIN or tier.needs_apache_hudi


def _archive(environment: Environment) -> None:
    ensure_class_archive(environment, ensure(environment))


def _in_thread(work: Callable[[], None]) -> threading.Thread:
    def quietly() -> None:
        with in_background(), contextlib.suppress(SetupError):
            work()

    thread = threading.Thread(target=quietly, daemon=True)
    thread.start()
    return thread

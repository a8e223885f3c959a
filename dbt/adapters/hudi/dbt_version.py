"""Refuses a dbt-core that runs no adapters written in Python, before anything of it is imported."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def check_dbt_core(found: str) -> None:
    """Raise ImportError for dbt-core 2 and later.

    Args:
        found: Its version, such as ``1.11.2``.
    """
    major = found.partition(".")[0]
    if major.isdigit() and int(major) >= 2:
        raise ImportError(
            f"dbt-core {found} is installed. dbt 2 is a program of its own that loads no adapters written in Python, and "
            "dbt-hudi is one: install dbt-core 1, pip install 'dbt-core<2' dbt-hudi, and run its dbt command"
        )


def check_installed() -> None:
    """Check the version of dbt-core that is installed; none is no error here."""
    try:
        check_dbt_core(version("dbt-core"))
    except PackageNotFoundError:
        pass

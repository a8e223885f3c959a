"""The hook of a node that is under way, for the text of its errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from hudi_engine.format.spelling import did_you_mean

from dbt.adapters.hudi.run import RUNS

_UNDEFINED = re.compile(r"'(\w+)' is undefined")


def hook_text(when: str, number: int, of: int) -> str:
    """Return which hook it is, and what an error of it leaves; ``""`` for none."""
    left = (
        "the model was not run"
        if when == "pre-hook"
        else "what the model wrote before is committed and stays, and append, insert or bulk_insert would add it again"
    )
    return f"in {when} {number} of {of}; {left}" if when else ""


def name_hook(error: DbtRuntimeError) -> None:
    """Put the hook that is under way before an error's text, once."""
    run = RUNS.current()
    if run.hook:
        error.msg, run.hook = f"{run.hook}:\n{error.msg}", ""


def rendered_hook(render: Callable[[str], str], text: str, resolver: Any) -> str:
    """Render a hook; an error names the hook, and the macro that may be meant."""
    try:
        return render(text)
    except DbtRuntimeError as error:
        unknown = _UNDEFINED.search(str(error.msg))
        if unknown is not None:
            macros = {each.name for each in resolver.macros.values()} if resolver is not None else ()
            error.msg = f"{error.msg}; {did_you_mean(unknown[1], macros)}the hook is {text}"
        name_hook(error)
        raise

"""The report as a file of this machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.options import Options
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.report.facts import gather
from hudi_engine.table.report.page import page
from hudi_engine.table.state import TableState


@dataclass(frozen=True)
class Report:
    """A page that was written."""

    path: Path
    bytes: int


def default_name(table: str) -> str:
    """Return a file name for the report of a table; what is no plain letter or digit in its name becomes an underscore."""
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', table)[:100] or 'table'}-report.html"


def write_report(
    state: TableState, options: Options, output: str | Path | None = None, *, count_rows: bool = False
) -> Report:
    """Write the report of a table; a file of that name is replaced as a whole.

    Args:
        output: The file; None for ``<table>-report.html`` in the working directory.
        count_rows: Whether logs are merged to know the rows of a merge-on-read table.

    Raises:
        ConfigError: The file would lie in the table, is a folder, or its folder is not there.
        CorruptTableError: The table cannot be read.
    """
    try:
        path = Path(output or default_name(state.config.name)).expanduser().resolve()
    except RuntimeError as error:
        raise ConfigError(
            f"the report cannot be written to {str(output)!r}: {error} Name another file"
        ) from error
    base = state.storage.base
    if "://" not in base and path.is_relative_to(Path(base).resolve()):
        raise ConfigError(f"the report would lie in the table, at {str(path)!r}; name a file outside of it")
    if path.is_dir():
        raise ConfigError(f"the report cannot be written to {str(path)!r}, which is a folder; name a file")
    if not path.parent.is_dir():
        raise ConfigError(
            f"the report cannot be written to {str(path)!r}: there is no folder {str(path.parent)!r}; make it, or name another"
        )
    body = page(gather(state, options, count_rows=count_rows)).encode("utf-8")
    LocalStorage(str(path.parent)).replace(path.name, body)
    return Report(path, len(body))

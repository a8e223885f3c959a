"""What a call says of a clustering in plain words, as options."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_engine.errors import ConfigError
from hudi_engine.format.config.declared.clustering_options import ClusteringOptions
from hudi_engine.format.config.enums import PartitionFilter
from hudi_engine.format.config.options import Options
from hudi_engine.format.layout.layout import SORT_COLUMNS, STRATEGY, split_names
from hudi_engine.format.spelling import no_such_partitions
from hudi_engine.table.state import TableState


def clustering_options(
    options: Options,
    *,
    columns: str | Iterable[str] | None = None,
    strategy: str | None = None,
    partitions: Iterable[str] | None = None,
) -> Options:
    """Return options with what a call names on top.

    Args:
        columns: Columns by which rows are ordered; None leaves the options'.
        strategy: ``linear``, ``z-order`` or ``hilbert``; None leaves the options'.
        partitions: Partition paths to look at; None leaves the options'.

    Raises:
        ConfigError: A value makes no sense.
    """
    asked: dict[str, object] = {}
    if columns is not None:
        asked[SORT_COLUMNS.key] = (
            columns if isinstance(columns, str) else ",".join(_names(columns, "columns"))
        )
    if strategy is not None:
        asked[STRATEGY.key] = strategy
    if partitions is not None:
        asked[ClusteringOptions.PARTITION_FILTER.key] = PartitionFilter.SELECTED_PARTITIONS
        asked[ClusteringOptions.SELECTED_PARTITIONS.key] = ",".join(_paths(partitions))
    return options.merged(asked) if asked else options


def check_partitions(state: TableState, options: Options) -> None:
    """Refuse to look for partitions by name that a table does not have.

    Args:
        options: What ``clustering_options`` gave for the names of a call.

    Raises:
        ConfigError: The table has rows, and none in one of the partitions.
    """
    wanted = split_names(options[ClusteringOptions.SELECTED_PARTITIONS])
    known = {each.partition for each in state.view().latest_slices()}
    missing = [each for each in wanted if each not in known]
    if not missing or not known:
        return
    if not state.config.is_partitioned:
        raise ConfigError(f"table {state.config.name!r} has no partitions; leave partitions out")
    raise ConfigError(no_such_partitions(missing, known, state.config.name))


def _paths(given: Iterable[str]) -> list[str]:
    """Return partition paths that can be written with commas between, without naming others."""
    paths = _names(given, "partitions")
    other = [path for path in paths if split_names(path) != (path,)]
    if other:
        raise ConfigError(
            f"partition {other[0]!r} cannot be chosen for a clustering by its path, of which a comma, or a blank at an end, would "
            f"make others; leave partitions and condition out, and choose it by {ClusteringOptions.PARTITION_PATTERN}"
        )
    return paths


def _names(given: Iterable[str], what: str) -> list[str]:
    if isinstance(given, str):
        return [given]
    try:
        names = list(given)
    except TypeError:
        names = [given]  # type: ignore[list-item]
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise ConfigError(
            f"{what} of a clustering holds {wrong[0]!r}; give names, such as ['day', 'customer']"
        )
    return names

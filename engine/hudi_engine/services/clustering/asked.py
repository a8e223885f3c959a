"""What a call says of a clustering in plain words, as options."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_engine.config.declared.clustering_options import ClusteringOptions
from hudi_engine.config.enums import PartitionFilter
from hudi_engine.config.options import Options
from hudi_engine.errors import ConfigError
from hudi_engine.layout.layout import SORT_COLUMNS, STRATEGY


def clustering_options(
    options: Options,
    *,
    columns: str | Iterable[str] | None = None,
    strategy: str | None = None,
    partitions: Iterable[str] | None = None,
) -> Options:
    """Return options with what a call names on top.

    Args:
        options: Options of the call.
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
        asked[ClusteringOptions.SELECTED_PARTITIONS.key] = ",".join(_names(partitions, "partitions"))
    return options.merged(asked) if asked else options


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

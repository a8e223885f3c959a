"""How a clustering plan is carried out: which of Hudi's execution strategies this engine knows."""

from __future__ import annotations

from hudi_engine.errors import UnsupportedTableError
from hudi_engine.format.config.declared.clustering_options import ClusteringOptions

_KNOWN = ("SparkSortAndSizeExecutionStrategy", "JavaSortAndSizeExecutionStrategy")


def is_known_strategy(given: str) -> bool:
    """Return whether a strategy is the sorting one, by its class name."""
    return given.rpartition(".")[2] in _KNOWN


def check_strategy(given: str) -> None:
    """Refuse a strategy that is not the sorting one.

    Args:
        given: Class name from an option or a stored plan.
    """
    if not is_known_strategy(given):
        raise UnsupportedTableError(
            f"{ClusteringOptions.EXECUTION_STRATEGY} is {given!r}; this engine carries out {' and '.join(_KNOWN)}. Plan with "
            "one of them, or let Apache Hudi run this plan"
        )

"""Procedures of clustering."""

from __future__ import annotations

from dataclasses import replace

from hudi_engine.errors import ConfigError
from hudi_engine.format.layout.layout import split_names
from hudi_engine.spark.procedures.procedure import Call, Row
from hudi_engine.table.services import PendingClustering
from hudi_engine.table.services.clustering.arguments import clustering_options
from hudi_engine.table.table_services import TableServices

CLUSTERINGS = "timestamp string, input_group_size int, state string, involved_partitions string"
RUN_ARGUMENTS = (
    "table",
    "predicate",
    "order",
    "show_involved_partition",
    "op",
    "order_strategy",
    "options",
    "instants",
    "selected_partitions",
)
_OPS = ("schedule", "execute", "scheduleAndExecute")


def show_clustering(call: Call) -> list[Row]:
    """Return the clusterings, newest first."""
    found = call.services.clusterings()[::-1]
    return _rows(call, found[: call.number("limit", 20)])


def schedule_or_run_clustering(call: Call) -> list[Row]:
    """Plan or run a clustering, or both, or run those that are pending."""
    instants = split_names(call.given.get("instants"))
    op = call.text("op", _OPS[1] if instants else _OPS[2])
    if op.lower() not in [each.lower() for each in _OPS]:
        raise ConfigError(f"run_clustering has op => {op!r}; legal values: {', '.join(_OPS)}")
    if instants and op.lower() != _OPS[1]:
        raise ConfigError(
            f"run_clustering has instants and op => {op!r}; instants are run by op => 'execute'"
        )
    services = _asked(call)
    if op.lower() == _OPS[1]:
        pending = [each.instant for each in services.clusterings() if each.state != "COMPLETED"]
        touched = list(instants or pending)
    else:
        planned = services.schedule_clustering().instant
        touched = [] if planned is None else [planned]
    if op.lower() != _OPS[0]:
        for instant in touched:
            services.cluster(instant)
    return _rows(call, [each for each in services.clusterings()[::-1] if each.instant in touched])


def _asked(call: Call) -> TableServices:
    services = call.services
    partitions = (
        split_names(call.given["selected_partitions"]) if "selected_partitions" in call.given else None
    )
    if "predicate" in call.given:
        if services.find_partitions is None:
            raise ConfigError(
                "run_clustering has a predicate, which needs Spark; give selected_partitions instead"
            )
        partitions = tuple(services.find_partitions(call.given["predicate"]))
    options = clustering_options(
        call.options(),
        columns=call.given.get("order"),
        strategy=call.given.get("order_strategy"),
        partitions=partitions,
    )
    return replace(services, options=options)


def _rows(call: Call, found: list[PendingClustering]) -> list[Row]:
    every = call.truth("show_involved_partition", False)
    return [
        (each.instant, each.groups, each.state, ",".join(each.partitions) if every else "*") for each in found
    ]

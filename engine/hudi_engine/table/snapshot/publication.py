"""What writers may do with a table's published file lists (:class:`hudi_engine.table.txn.publication.Publication`)."""

from __future__ import annotations

from collections.abc import Callable, Collection

from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage
from hudi_engine.table.snapshot.derive import RunTasks, make_in_threads
from hudi_engine.table.snapshot.manifest import Published, find_newest, live_manifest_files, publish
from hudi_engine.table.snapshot.sidecar_files import obsolete_sidecars
from hudi_engine.table.txn.publication import Publication


def publication_of(
    storage: Storage,
    run_sidecars: RunTasks = make_in_threads,
    *,
    first: bool = False,
    on_renew: Callable[[Published], object] = lambda _: None,
) -> Publication:
    """Return the published file lists of a table.

    Args:
        run_sidecars: Where files that are made for readers are made.
        first: Whether to publish a first list where there is none.
        on_renew: Called with each list that was published anew.
    """

    def bring_up(config: TableConfig) -> None:
        found = find_newest(storage)
        if first or found.manifest is not None:
            publish(storage, config, run_sidecars=run_sidecars, found=found)

    def renew(config: TableConfig) -> None:
        found = find_newest(storage)
        if found.manifest is not None:
            on_renew(publish(storage, config, run_sidecars=run_sidecars, renew=True, found=found))

    def shows(instants: Collection[str]) -> bool:
        manifest = find_newest(storage).manifest
        if manifest is None:
            return False
        return manifest.stamp is None or not set(manifest.stamp.writes).isdisjoint(instants)

    return Publication(
        publish=bring_up,
        live_files=lambda: live_manifest_files(storage),
        obsolete_sidecars=lambda listed, oldest: obsolete_sidecars(storage, listed, oldest, listed),
        renew=renew,
        shows=shows,
    )

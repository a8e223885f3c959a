"""What writers may do with a table's published file lists (:class:`hudi_engine.table.txn.publication.Publication`)."""

from __future__ import annotations

from collections.abc import Collection

from hudi_engine.format.storage.base import Storage
from hudi_engine.table.snapshot.derive import RunTasks, make_in_threads
from hudi_engine.table.snapshot.manifest import live_manifest_files, newest_manifest, publish
from hudi_engine.table.snapshot.sidecar_files import obsolete_sidecars
from hudi_engine.table.txn.publication import Publication


def publication_of(
    storage: Storage, run_sidecars: RunTasks = make_in_threads, *, first: bool = False
) -> Publication:
    """Return the published file lists of a table.

    Args:
        run_sidecars: Where files that are made for readers are made.
        first: Whether to publish a first list where there is none.
    """

    def bring_up() -> None:
        if first or newest_manifest(storage) is not None:
            publish(storage, run_sidecars=run_sidecars)

    def renew() -> None:
        if newest_manifest(storage) is not None:
            publish(storage, run_sidecars=run_sidecars, renew=True)

    def shows(instants: Collection[str]) -> bool:
        manifest = newest_manifest(storage)
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

"""The record beside a table of a flat store that says in which folder the table is until it has been moved."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hudi_engine.errors import CorruptTableError
from hudi_engine.format.storage.base import Storage
from hudi_engine.format.storage.read_only import is_refusal
from hudi_engine.table.txn.owner import Owner, OwnerState, read_with_time


@dataclass(frozen=True)
class SwapRecord:
    """A swap that has been switched.

    Args:
        new: Name of the folder with the new table.
        owner: Who finishes it, None where the file does not say it.
    """

    new: str
    owner: Owner | None
    modified_ms: int
    body: bytes

    def is_at_work(self, parent: Storage) -> bool:
        """Tell whether somebody is finishing it: a process that lives, or elsewhere one that still beats.

        Args:
            parent: The folder of the record; beats of other machines are judged by its clock.
        """
        if self.owner is None:
            return False
        try:
            return self.owner.state_in(parent, self.modified_ms) is OwnerState.ALIVE
        except OSError as error:
            if is_refusal(error):
                return True  # whoever may only read follows the record
            raise


def read_swap_record(parent: Storage, path: str, start: str) -> SwapRecord | None:
    """Return the record of a table, None when there is none.

    Args:
        start: How names of folders begin in which the table is built anew.

    Raises:
        CorruptTableError: It is damaged.
    """
    found = read_with_time(parent, path)
    if found is None:
        return None
    body, modified_ms = found
    where = f"{parent.base.rstrip('/')}/{path}"
    try:
        new = str(json.loads(body)["new"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(
            f"{where} cannot be read: {error!r}. It says which folder holds the rebuilt table; look which one is whole, and "
            "delete the record"
        ) from error
    if not new.startswith(start) or "/" in new:
        raise CorruptTableError(
            f"{where} names {new!r}, which is no folder of a rebuild of this table; delete the record if the table is whole"
        )
    return SwapRecord(new, Owner.parse(body), modified_ms, body)

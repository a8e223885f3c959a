"""Whether new keys are written in the form of the stored ones: Hudi has two for times."""

from __future__ import annotations

import re

import pyarrow as pa

from hudi_engine.errors import InvalidKeyError
from hudi_engine.format.config.declared.table_options import TableOptions
from hudi_engine.format.merge.read_context import ReadContext

_TIME = re.compile(r"-?\d{4,}-\d\d-\d\d[ T]\d\d:\d\d")


def check_key_form(read: ReadContext, stored: str | None, keys: pa.Array) -> None:
    """Refuse keys that are times in another form than a stored one; raises InvalidKeyError with the option to set.

    No property says which form a table has, and Hudi's ``bulk_insert`` writes text whatever the option says.
    """
    fields = read.config.record_key_fields
    place = read.schema.get_field_index(fields[0]) if len(fields) == 1 else -1
    if stored is None or place < 0 or not pa.types.is_timestamp(read.schema.field(place).type):
        return
    new = next(iter(keys.drop_null().slice(0, 1).to_pylist()), None)
    if new is None or bool(_TIME.search(stored)) == bool(_TIME.search(new)):
        return
    wanted = "true" if _TIME.search(stored) else "false"
    raise InvalidKeyError(
        f"{fields[0]} is the record key, and the table has its times as {stored!r} where this write makes {new!r}: no stored row "
        f"would be found; set {TableOptions.CONSISTENT_TIMESTAMPS.key} to {wanted}"
    )

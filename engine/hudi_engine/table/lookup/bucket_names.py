"""Tables that Apache Hudi wrote with a bucket index: no property says so, but the names of file groups and a folder do."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hudi_engine.errors import ConfigError, UnsupportedTableError
from hudi_engine.format.config.declared.write_options import IndexOptions
from hudi_engine.format.config.options import Options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.base import Storage

_BUCKET_NAME = re.compile(r"(\d{8})-")
_OTHER_ENGINES = ".hoodie/.bucket_index"
_MOST, _MOST_OF_ONE = 100_000, 10_000


def refuse_unsaid_buckets(config: TableConfig, options: Options, file_ids: Iterable[str]) -> None:
    """Refuse to use another index where the file groups are named as buckets; raises ConfigError with the options to give."""
    if config.is_of_this_engine or options[IndexOptions.TYPE] is not None:
        return
    names = sorted(set(file_ids))
    if _are_buckets(names):
        raise ConfigError(
            f"file groups of table {config.name!r} are named as buckets are ({names[0]!r}), and {IndexOptions.TYPE.key} is not "
            f"said: a row in another file group than its bucket's would be there twice for Apache Hudi. Give "
            f"{IndexOptions.TYPE.key}=BUCKET and {IndexOptions.BUCKETS.key} of the writer that made it (in dbt index: {{type: "
            "bucket, buckets: 8}); if it has no bucket index, give the index it has, such as SIMPLE"
        )


def refuse_other_bucket_engines(storage: Storage, config: TableConfig) -> None:
    """Refuse consistent hashing, or bucket numbers by partition; raises UnsupportedTableError."""
    if not config.is_of_this_engine and storage.exists(_OTHER_ENGINES):
        raise UnsupportedTableError(
            f"table {config.name!r} has {_OTHER_ENGINES}: its buckets are those of consistent hashing, or differ by partition. "
            "This engine reads such tables but does not write them; write to it with Apache Hudi, or rebuild it here with a "
            "fixed number of buckets"
        )


def _are_buckets(names: list[str]) -> bool:
    """Tell whether names begin with small numbers, as random ones do once in many thousand times."""
    found = [_BUCKET_NAME.match(name) for name in names]
    numbers = [int(each.group(1)) for each in found if each is not None]
    return (
        bool(names) and len(numbers) == len(names) and max(numbers) < (_MOST if names[1:] else _MOST_OF_ONE)
    )

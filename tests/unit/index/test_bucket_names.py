"""Tables of Apache Hudi whose file groups are buckets are told by the names of these."""

from __future__ import annotations

import pytest
from hudi_engine.errors import ConfigError, UnsupportedTableError
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage.local import LocalStorage
from hudi_engine.table.lookup.buckets import refuse_other_bucket_engines, refuse_unsaid_buckets

HUDIS = {"hoodie.table.name": "t", "hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.version": "6"}
REST = "-57f9-4be7-8689-57d4a1671bf4-0"


@pytest.mark.parametrize("numbers", [["00000000"], ["00000001", "00000003"], ["00000001", "00050000"]])
def test_file_groups_that_all_begin_with_small_numbers_are_buckets(numbers):
    with pytest.raises(ConfigError, match=f"'{numbers[0]}{REST}'.*hoodie.index.type is not set"):
        refuse_unsaid_buckets(TableConfig(HUDIS), resolve_options({}), [each + REST for each in numbers])


@pytest.mark.parametrize(
    "names", [[], ["12345678"], ["00000001", "0000000a"], ["00012345"], ["00000001", "70000000"]]
)
def test_names_that_may_be_random_are_none(names):
    refuse_unsaid_buckets(TableConfig(HUDIS), resolve_options({}), [each + REST for each in names])


def test_an_index_that_is_said_and_tables_of_this_engine_are_believed():
    simple = resolve_options({"hoodie.index.type": "SIMPLE"})
    refuse_unsaid_buckets(TableConfig(HUDIS), simple, ["00000001" + REST])
    ours = {**HUDIS, "hoodie.table.timeline.timezone": "UTC"}
    refuse_unsaid_buckets(TableConfig(ours), resolve_options({}), ["00000001" + REST])


@pytest.mark.parametrize(
    "theirs",
    [
        {"hoodie.table.timeline.timezone": "LOCAL"},
        {"hoodie.table.timeline.timezone": "UTC", "hoodie.timeline.path": "timeline"},
    ],
)
def test_a_table_that_hudi_made_by_sql_with_a_time_zone_is_not_taken_for_one_of_this_engine(theirs, tmp_path):
    config = TableConfig({**HUDIS, **theirs})
    with pytest.raises(ConfigError, match="named as buckets"):
        refuse_unsaid_buckets(config, resolve_options({}), ["00000001" + REST])
    storage = LocalStorage(str(tmp_path))
    storage.create(".hoodie/.bucket_index/consistent_hashing_metadata/p/00.hashing_meta", b"{}")
    with pytest.raises(UnsupportedTableError, match="consistent hashing"):
        refuse_other_bucket_engines(storage, config)

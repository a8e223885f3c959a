"""The text of a key field that many rows get in Spark is the one that few get on the driver."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hudi_engine.format.config.options import resolve_options
from hudi_engine.format.keygen.generator import build_key_generator
from hudi_engine.format.schema.casting import cast_array
from hudi_engine.spark.write.rows.key_columns import field_text

from tests.helpers.table_settings import version_6

TIMES = [-1, -1001, -86_400_000_001, 0, 1999]
TEXTS = {"datasource__write__keygenerator__consistent__logical__timestamp__enabled": "true"}
DATED = {
    "keygen__timebased__timestamp__type": "EPOCHMILLISECONDS",
    "keygen__timebased__output__dateformat": "yyyy/MM/dd HH:mm:ss",
}


@pytest.mark.parametrize(("dated", "settings"), [(False, TEXTS), (True, DATED)], ids=["key", "partition"])
def test_times_before_1970_of_a_table_in_milliseconds_are_cut_alike(dated, settings):
    kind = pa.timestamp("ms", "UTC")
    config = version_6(
        "at", "at", {"hoodie.table.keygenerator.type": "TIMESTAMP" if dated else "SIMPLE"}, settings
    )
    generator = build_key_generator(config, options=resolve_options({}))
    given = pa.array(TIMES, pa.timestamp("us", "UTC"))
    text = field_text(generator, pa.schema([("at", kind)]), "at", dated)
    stored = pa.table({"at": cast_array(given, kind)})
    wanted = generator.partition_paths(stored) if dated else generator.record_keys(stored)
    assert text.convert(given).to_pylist() == wanted.to_pylist()

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_engine.errors import CorruptTableError
from hudi_engine.format.config.table_config import TableConfig
from hudi_engine.format.storage import open_storage
from hudi_engine.table.snapshot.layout import choose_layout, column_is_null
from hudi_engine.table.snapshot.manifest_file import Layout

BY_HUDI = {"hoodie.partition.metafile.use.base.format": "false"}
CUSTOM = {"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator"}
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("dt", pa.string()),
        ("n", pa.int32()),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("ok", pa.bool_()),
    ]
)


def table(partition_fields="dt", **changes):
    """Settings of a hive-style, url-encoded table; keyword dots are underscores doubled."""
    values = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.table.partition.fields": partition_fields,
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
    }
    return TableConfig.from_properties({**values, **changes})


def layout(config, *partitions, schema=SCHEMA, all_null=True):
    return choose_layout(config, schema, partitions, lambda *_: all_null)


@pytest.mark.parametrize("folder", ["dt=x", "dt=01", "dt=a b", "dt=50%25", "dt=x%3Dy", "dt=é", "dt=x%2Fy"])
def test_an_encoded_hive_folder_says_its_value(folder):
    assert layout(table(), folder) is Layout.HIVE


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("dt=x", Layout.HIVE),
        ("dt=x=y", Layout.HIVE),
        ("dt=50%", Layout.HIVE),
        ("dt=50%25", Layout.FLAT),
        ("dt=a b/c", Layout.FLAT),
    ],
)
def test_without_encoding_a_folder_says_its_value_unless_spark_would_unescape_or_split_it(folder, expected):
    config = table(**{"hoodie.datasource.write.partitionpath.urlencode": "false"})
    assert layout(config, folder) is expected


def test_several_partition_columns_have_a_folder_each():
    config = table("dt,n")
    assert layout(config, "dt=x/n=1") is Layout.HIVE
    assert layout(config, "dt=x") is Layout.FLAT
    assert layout(config, "n=1/dt=x") is Layout.FLAT


def test_the_folder_of_nulls_is_believed_when_no_empty_string_is_in_it():
    folder = "dt=__HIVE_DEFAULT_PARTITION__"
    assert layout(table(), folder, all_null=True) is Layout.HIVE
    assert layout(table(), folder, all_null=False) is Layout.FLAT


def test_numbers_have_no_empty_string():
    assert layout(table("n"), "n=__HIVE_DEFAULT_PARTITION__", all_null=False) is Layout.HIVE


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("day=2024-01-01", Layout.HIVE),
        ("day=__HIVE_DEFAULT_PARTITION__", Layout.HIVE),
        ("day=19723", Layout.FLAT),
        ("day=2024-1-1", Layout.FLAT),
        ("n=-7", Layout.HIVE),
        ("n=0", Layout.HIVE),
        ("n=07", Layout.FLAT),
        ("n=7.0", Layout.FLAT),
        ("ok=true", Layout.HIVE),
        ("ok=1", Layout.FLAT),
    ],
)
def test_a_folder_whose_text_is_not_that_of_its_type_does_not_say_the_value(folder, expected):
    assert layout(table(folder.partition("=")[0]), folder) is expected


@pytest.mark.parametrize(
    "config",
    [
        table(""),
        table("at"),
        table("dt:timestamp"),
        table("missing"),
        table(**{"hoodie.datasource.write.hive_style_partitioning": "false"}),
        table(**{"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator"}),
        table("n", **CUSTOM, **BY_HUDI),
        table(**{"hoodie.table.keygenerator.class": "com.acme.OwnKeyGenerator"}),
    ],
    ids=[
        "not partitioned",
        "timestamp column",
        "timestamp folder",
        "no such column",
        "plain folders",
        "formatted",
        "custom fields without kinds",
        "somebody's own",
    ],
)
def test_other_folders_do_not_say_the_value(config):
    assert layout(config) is Layout.FLAT


def test_fields_of_a_custom_key_generator_say_their_values_where_kinds_would_be_stored():
    zone = {"hoodie.table.timeline.timezone": "UTC"}
    assert layout(table("n", **CUSTOM, **zone), "n=1") is Layout.HIVE, "made by this engine"
    assert layout(table("n:simple", **CUSTOM, **zone, **BY_HUDI), "n=1") is Layout.HIVE
    assert layout(table("n", **CUSTOM, **zone, **BY_HUDI), "n=1") is Layout.FLAT


@pytest.mark.parametrize(
    ("values", "expected"), [([None, None], True), ([None, ""], False), (["", ""], False), ([], True)]
)
def test_parquet_statistics_tell_nulls_from_empty_strings(tmp_path, values, expected):
    pq.write_table(
        pa.table({"id": [1] * len(values), "dt": pa.array(values, pa.string())}), tmp_path / "f.parquet"
    )
    assert column_is_null(open_storage(str(tmp_path)), "f.parquet", "dt") is expected


def test_without_statistics_a_column_is_not_known_to_be_null(tmp_path):
    pq.write_table(
        pa.table({"dt": pa.array([None], pa.string())}), tmp_path / "f.parquet", write_statistics=False
    )
    assert not column_is_null(open_storage(str(tmp_path)), "f.parquet", "dt")


def test_a_file_whose_footer_is_damaged_is_named(tmp_path):
    (tmp_path / "f.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(CorruptTableError, match=r"f\.parquet"):
        column_is_null(open_storage(str(tmp_path)), "f.parquet", "dt")

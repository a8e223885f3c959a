"""How base files are laid out as Parquet."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_engine.config.options import Options
from hudi_engine.errors import ConfigError
from hudi_engine.index.filters.bloom import DEFAULT_FALSE_POSITIVE_RATE, DEFAULT_MAX_ENTRIES, BloomFilterType

CODECS = {"zstd": "zstd", "gzip": "gzip", "snappy": "snappy", "lz4": "lz4", "uncompressed": "none"}
"""Values of ``hoodie.parquet.compression.codec`` and the names pyarrow has for them."""

_FAST_LEVELS = {"zstd": 1}


@dataclass(frozen=True)
class BaseFileOptions:
    """Layout of base files and of the index data in their footers; picklable.

    Args:
        codec: Compression codec, a key of `CODECS`.
        row_group_bytes: A row group ends after about this many bytes of uncompressed rows.
        page_bytes: Size of a data page in bytes, before compression.
        max_file_bytes: Size in bytes at which callers begin a new file.
        dictionary: Whether columns whose values repeat are dictionary encoded.
        bloom_type: Kind of the Bloom filter in the footer.
        bloom_entries: Keys the filter is made for; None sizes it to the keys of the file.
        bloom_fpp: False-positive rate of the filter, between 0 and 1, both excluded.
        bloom_max_entries: Keys up to which a dynamic filter opens further rows.
        bloom_enabled: Whether a filter is written. Without one Hudi's BLOOM index fails on the file.

    Raises:
        ConfigError: A value is outside its range.
    """

    codec: str = "zstd"
    row_group_bytes: int = 120 * 1024 * 1024
    page_bytes: int = 1024 * 1024
    max_file_bytes: int = 120 * 1024 * 1024
    dictionary: bool = True
    bloom_type: BloomFilterType = BloomFilterType.DYNAMIC_V0
    bloom_entries: int | None = None
    bloom_fpp: float = DEFAULT_FALSE_POSITIVE_RATE
    bloom_max_entries: int = DEFAULT_MAX_ENTRIES
    bloom_enabled: bool = True

    def __post_init__(self) -> None:
        if self.codec not in CODECS:
            raise ConfigError(
                f"hoodie.parquet.compression.codec is {self.codec!r}; legal values: {', '.join(CODECS)}"
            )
        if min(self.row_group_bytes, self.page_bytes, self.max_file_bytes) < 1:
            raise ConfigError(
                f"sizes of base files must be positive: row group {self.row_group_bytes}, "
                f"page {self.page_bytes}, file {self.max_file_bytes} bytes"
            )

    @classmethod
    def from_options(cls, options: Options) -> BaseFileOptions:
        """Take the layout from the options of a write."""
        entries = options.value("hoodie.index.bloom.num_entries")
        return cls(
            codec=options.text("hoodie.parquet.compression.codec") or "zstd",
            row_group_bytes=options.int("hoodie.parquet.block.size"),
            page_bytes=options.int("hoodie.parquet.page.size"),
            max_file_bytes=options.int("hoodie.parquet.max.file.size"),
            dictionary=options.bool("hoodie.parquet.dictionary.enabled"),
            bloom_type=BloomFilterType(options.text("hoodie.bloom.index.filter.type")),
            bloom_entries=None if entries is None else int(entries),
            bloom_fpp=options.float("hoodie.index.bloom.fpp"),
            bloom_max_entries=options.int("hoodie.bloom.index.filter.dynamic.max.entries"),
        )

    @property
    def parquet_codec(self) -> str:
        """The codec by pyarrow's name."""
        return CODECS[self.codec]

    @property
    def compression_level(self) -> int | None:
        """Level of the codec; None is the codec's own default."""
        return _FAST_LEVELS.get(self.codec)

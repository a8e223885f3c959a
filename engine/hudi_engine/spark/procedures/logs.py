"""Procedures that look into log files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase

from hudi_engine.errors import ConfigError
from hudi_engine.format.filegroup.log_file import LogFile, parse_log_file
from hudi_engine.format.logformat.format import HeaderKey, LogBlock
from hudi_engine.format.logformat.reader import decode_data_block, read_blocks
from hudi_engine.spark.procedures.procedure import Call, Row

BLOCKS = (
    "instant_time string, record_count int, block_type string, header_metadata string, footer_metadata string"
)
RECORDS = "records string"
ARGUMENTS = ("table", "log_file_path_pattern", "limit")


def show_logfile_metadata(call: Call) -> list[Row]:
    """Return the blocks of log files."""
    limit, corrupt, rows = call.number("limit", 10), Counter[str](), list[Row]()
    for block in _blocks(call):
        if len(rows) >= limit:
            break
        count = decode_data_block(block).num_rows if block.is_data else 0
        rows.append((_instant(block, corrupt), count, f"{block.kind.name}_BLOCK", _header(block), "{}"))
    return rows


def show_logfile_records(call: Call) -> list[Row]:
    """Return the records of log files as JSON, as they were written; deletes are not among them."""
    limit, rows = call.number("limit", 10), list[Row]()
    for block in _blocks(call):
        if len(rows) >= limit:
            break
        if block.is_data:
            found = decode_data_block(block).slice(0, limit - len(rows)).to_pylist()
            rows += [(json.dumps(record, default=str, ensure_ascii=False),) for record in found]
    return rows


def _blocks(call: Call) -> Iterator[LogBlock]:
    for log in _logs(call):
        yield from read_blocks(call.state.storage.read(log.path))


def _logs(call: Call) -> list[LogFile]:
    """Return the log files of the table whose path fits the pattern, with the table's place before it or without."""
    pattern, storage = call.text("log_file_path_pattern"), call.state.storage
    view = call.state.view()
    logs = [
        log
        for partition in view.partitions
        for status in view.files(partition)
        if (log := parse_log_file(status.name, partition, status)) is not None and not log.is_cdc
    ]
    places = [pattern, f"{storage.base.rstrip('/')}/{pattern}"]
    found = [
        log
        for log in logs
        if any(
            fnmatchcase(name, place)
            for name in (log.path, storage.uri(log.path), f"{storage.base.rstrip('/')}/{log.path}")
            for place in places
        )
    ]
    if not found:
        example = logs[0].path if logs else "none, the table has no log file"
        raise ConfigError(
            f"log_file_path_pattern is {pattern!r}, which no log file of the table fits; one of its log files is: {example}"
        )
    return sorted(found, key=lambda log: (log.partition, log.sort_key))


def _instant(block: LogBlock, corrupt: Counter[str]) -> str:
    told = block.header.get(HeaderKey.INSTANT_TIME)
    if told is None:
        corrupt["blocks"] += 1
        return f"corrupt_block_{corrupt['blocks']}"
    return told


def _header(block: LogBlock) -> str:
    known = {key.value: key.name for key in HeaderKey}
    return json.dumps({known.get(key, str(key)): value for key, value in block.header.items()})

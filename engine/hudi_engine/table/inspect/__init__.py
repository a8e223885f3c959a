"""What there is to know about a table: facts as plain values, from its files alone, without Spark and without printing.

Operations, procedures, the command line and reports show the same facts.
"""

from hudi_engine.table.inspect.commits import (
    CommitFacts,
    InstantFacts,
    archived_commit_facts,
    cells_of,
    commit_cells,
    commit_facts,
    instant_facts,
    moment_of,
)
from hudi_engine.table.inspect.files import FileFacts, PartitionFacts, Snapshot, file_facts, partition_facts
from hudi_engine.table.inspect.validation import Finding, damaged_files, duplicate_keys, validate

__all__ = [
    "CommitFacts",
    "FileFacts",
    "Finding",
    "InstantFacts",
    "PartitionFacts",
    "Snapshot",
    "archived_commit_facts",
    "cells_of",
    "commit_cells",
    "commit_facts",
    "damaged_files",
    "duplicate_keys",
    "file_facts",
    "instant_facts",
    "moment_of",
    "partition_facts",
    "validate",
]

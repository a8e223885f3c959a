"""Compaction: the log files of a merge-on-read table become new base files."""

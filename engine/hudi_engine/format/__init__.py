"""Bytes and names of a Hudi table: options, storage, schema, timeline, file groups, logs, merging. No Spark, no lock."""

"""Avro datums to Arrow columns and back, a whole column at a time."""

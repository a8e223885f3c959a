"""Spark's types and their Arrow form in a Hudi table."""

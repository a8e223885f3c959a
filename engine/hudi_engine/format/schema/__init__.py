"""Schemas and types: Avro, Arrow and Spark."""

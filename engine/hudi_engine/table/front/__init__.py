"""A table as an object: what `hudi_engine.Table` and `HudiTable` share, and the way without Spark."""

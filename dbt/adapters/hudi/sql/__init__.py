"""SQL statements on Hudi tables: read from Spark's plans, run by the engine."""

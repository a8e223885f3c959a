"""Changes of a table as DataFrames and as a source of Spark."""

"""Changes of a table as DataFrames."""

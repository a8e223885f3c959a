"""The records of Hudi's metadata table: their keys, values, file groups and merging."""

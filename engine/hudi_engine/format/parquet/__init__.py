"""Column chunks of Parquet files, carried from one file to the next as they are."""

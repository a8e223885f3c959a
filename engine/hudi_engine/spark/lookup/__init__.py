"""Looking up the keys of large batches by Spark joins."""

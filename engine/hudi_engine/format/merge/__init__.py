"""One row a key: merging base files, logs and batches."""

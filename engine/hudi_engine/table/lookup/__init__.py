"""Which file slices hold the keys of a batch."""

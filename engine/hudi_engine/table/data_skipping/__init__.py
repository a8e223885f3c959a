"""Data skipping: which files can hold rows of a filter or of some keys, by the metadata table."""

"""File groups and slices: which files on storage make up a table."""

"""The index: from a record key to the file group that holds it."""

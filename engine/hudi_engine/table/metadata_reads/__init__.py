"""Reads by the metadata table: which files can hold rows of a filter or of some keys."""

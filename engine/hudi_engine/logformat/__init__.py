"""The log file format."""
